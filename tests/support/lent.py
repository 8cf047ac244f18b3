"""A sender that lends its NIC the CPU, or does not, and its receiver, under the real clock."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Callable, Iterator

from shrimpmx.link.rings import ring_links
from shrimpmx.native.segment import SEGMENT_TRACE, Segment
from shrimpmx.native.trace import Capture, Trace
from shrimpmx.nic.lent import LentNic
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.host import Host
from shrimpmx.vmmc.buffers import Export, Import
from shrimpmx.vmmc.process import VmmcProcess
from support.capture import new_capture
from support.conditions import patient
from support.vmmc import PLAIN_VMMC, VmmcNodes

LOCK_AT, LOCK_BYTES = 128, 40  # in struct vmmc_node
SETTLE_LIMIT_S = patient(30.0)
PAGE = 4096
LIBC = ctypes.CDLL(None)


class LentPair:
    """Node 1's process sends to node 0's buffer; `lends`: by itself where it can.

    `make_host`: how time passes for the senders.
    """

    def __init__(
        self,
        lends: bool = True,
        pages: int = 4,
        parameters: NicParameters = PLAIN_VMMC,
        clock: str = "monotonic",
        senders: int = 1,
        make_host: Callable[[VmmcNodes], Host] | None = None,
    ) -> None:
        self.virtual = clock == "virtual"
        self.rig = VmmcNodes(
            endpoints=senders, heap_bytes=1 << 20, parameters=parameters, clock=clock, lends=lends
        )
        self.parameters, self.lends = parameters, lends
        self.host = make_host(self.rig) if make_host else None
        self.receiver = VmmcProcess(self.rig.nodes[0], 0, self.rig.rank_runner(0))
        self.receiver.open()
        self.buffer: Export = self.receiver.export(pages * PAGE)
        self.senders = [self.open_sender(endpoint) for endpoint in range(senders)]
        self.sender, self.out = self.senders[0]

    def open_sender(self, endpoint: int) -> tuple[VmmcProcess, Import]:
        """A process of node 1, and the buffer that it has mapped."""
        nodes = self.rig.nodes
        egress, _ = ring_links(nodes, 1, self.parameters)
        lent = LentNic(nodes, 1, endpoint, egress, self.parameters) if self.lends else None
        self.lent = lent
        runner, agent = self.rig.rank_runner(1, endpoint), self.rig.rank_agent(1, endpoint)
        sender = VmmcProcess(
            self.rig.nodes[1], endpoint, runner, agent=agent, lent=lent, host=self.host
        )
        sender.open()
        return sender, self.map(sender)

    def map(self, sender: VmmcProcess) -> Import:
        request = sender.map_start(0, 0, self.buffer.index)
        self.settle()
        mapped = request.test()
        assert mapped is not None
        return mapped

    def settle(self) -> None:
        """Let everything arrive that is under way."""
        if self.virtual:
            self.rig.advance(1_000_000)
            return
        end_s = time.monotonic() + SETTLE_LIMIT_S
        while self.rig.step(*self.rig.nics) or any(nic.due_ns for nic in self.rig.nics):
            assert time.monotonic() < end_s, "the NICs do not come to rest"

    def arrived(self) -> int:
        """Packets that have come to node 0 so far."""
        return self.rig.nic_counters(0).get("rx_packets", 0)

    def use_trace(self) -> Trace:
        """Trace both NICs, whichever process acts as them."""
        agents = self.rig.first_nic + len(self.rig.nics)
        trace = Trace.create(
            Segment.anonymous(Trace.size_bytes(agents, 64), SEGMENT_TRACE), agents, 64
        )
        for number, nic in enumerate(self.rig.nics, self.rig.first_nic):
            nic.use_trace(trace, number)
        if self.lent is not None:
            self.lent.use_trace(trace)
        return trace

    def use_capture(self) -> Capture:
        """Keep the frames of both NICs, whichever process acts as them."""
        capture = new_capture()
        for node, nic in enumerate(self.rig.nics):
            nic.use_capture(capture, node)
        if self.lent is not None:
            self.lent.use_capture(capture)
        return capture

    def counters(self) -> list[dict[str, int]]:
        """Those of both NICs and of the sender that are not 0."""
        return [self.rig.nic_counters(node) for node in (0, 1)]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Another process acts as the NICs meanwhile."""
        lock = lock_of(self.rig)
        assert LIBC.pthread_mutex_lock(lock) == 0
        try:
            yield
        finally:
            LIBC.pthread_mutex_unlock(lock)

    def close(self) -> None:
        self.rig.control.set_stop("abort")  # no process steps the NICs that they would wait for
        for sender, _ in self.senders:
            sender.close()
        self.receiver.close()


def lock_of(rig: VmmcNodes) -> ctypes.Array[ctypes.c_char]:
    """The lock of the process that acts as the NICs, as pthreads know it."""
    place = rig.layouts[0].vmmc_offset + LOCK_AT
    return (ctypes.c_char * LOCK_BYTES).from_address(rig.nodes[0].segment.address + place)
