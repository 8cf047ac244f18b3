"""A network for schedulers of user-level threads that a test moves by hand, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shrimpmx.sockets.threads import NEVER_NS, Waits
from shrimpmx.vmmc.process import VmmcProcess
from support.host_node import RANK, HostNode


class FakeStream(list[str]):
    """What has arrived."""

    closed = False

    @property
    def ready(self) -> bool:
        return bool(self) or self.closed


class FakeNetwork:
    """Streams that change when the test says so.

    When the process waits, the next of `arrivals` is called. Where there is none left, time goes
    on to the deadline.
    """

    def __init__(self) -> None:
        self.host = HostNode.make(vmmc=True, heap_bytes=1 << 20, opened=False)
        self.process = VmmcProcess(self.host.node, 0, RANK, agent=RANK)
        self.wait_hook: Callable[[Waits, int], bool] | None = None
        self.arrivals: list[Callable[[], object]] = []
        self.waits: list[tuple[int, int]] = []  # of the process: streams, deadline
        self._now_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    def wait_in_process(self, waits: Waits, deadline: int) -> Sequence[int]:
        self.waits.append((len(waits), deadline))
        while not (
            found := [n for n, (stream, read, _) in enumerate(waits) if read and stream.ready]
        ):
            if deadline <= self._now_ns:
                break
            if self.arrivals:
                self.arrivals.pop(0)()
                continue
            assert deadline != NEVER_NS, "the process would wait for ever"
            self._now_ns = deadline
            self.host.control.set_virtual_ns(deadline)
        return found

    def receive(self, stream: FakeStream, deadline_ns: int = NEVER_NS) -> str:
        """What a socket's recv does."""
        while not stream:
            assert self.wait_hook is not None
            if not self.wait_hook(((stream, True, False),), deadline_ns):
                raise TimeoutError
            if stream.closed:
                raise OSError("closed")
        return stream.pop(0)

    @property
    def switches_counted(self) -> int:
        return self.host.control.agent_counters(RANK)["thread_switches"]
