"""What the fuzzer's frames come to: two nodes at work, in memory between guard pages."""

from __future__ import annotations

import functools
import gc
import mmap
import random
from typing import Any, ClassVar

SIZES = (0, 1, 32, 33, 128, 129, 1452, 5000, 32768, 40_000, 200_000, 600_000)
REQUESTS = 64  # of both endpoints, that have not ended
CANCELLED = 0.002  # of these, each time
PULL_RESEND_NS, RESEND_NS, ACK_NS = 2_000_000, 1_000_000, 100_000
PULL_RESENDS_MAX = 20
LOST = DOUBLED = LATE = 0.05  # of the real frames
DELAY_NS, LATE_NS = 1000, 50_000
HEAP_BYTES = 4 << 20
SESSION_ID = 0x1234  # of the made-up frames, too
FRAME_SLOTS = 64  # frames that lie on the way to a NIC, at most


class GuardedMemory:
    """Stands for Segment in the virtual cluster: its nodes get guard pages."""

    made: ClassVar[list[Any]] = []

    @classmethod
    def anonymous(cls, size_bytes: int, kind: int) -> Any:
        from support.guarded import GuardedSegment

        cls.made.append(GuardedSegment(-(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE))
        return cls.made[-1]

    @classmethod
    def free(cls) -> None:
        """Unmap all; nothing that used it is left."""
        gc.collect()
        while cls.made:
            cls.made.pop().close()


class World:
    """Two endpoints that keep sending to each other; `recent`: real frames for the first.

    Drawn: the size and format of frames, the kind of event ring, room in rings, how buffers are
    reached, and whether frames go straight to the handler or by a NIC, its interrupts and a dma
    agent.
    """

    def __init__(self, draw: random.Random) -> None:
        from shrimpmx.shared import private

        vars(private)["Segment"] = GuardedMemory
        self.draw = draw
        self.recent: list[bytes] = []
        self.mtu, self.wire_format = draw.choice(
            ((1500, "native"), (1500, "native"), (9000, "native"), (9000, "compatible"))
        )
        self.by_nic = draw.random() < 0.25
        layout = {
            "wire_format": self.wire_format,
            "event_ring": draw.choice(("lock-free", "reset")),
            "event_ring_entries": draw.choice((64, 1024)),
            "tx_ring_entries": draw.choice((16, 256)),
            "heap_bytes": HEAP_BYTES,
            "pull_resend_delay_ns": PULL_RESEND_NS,
            "resends_max": PULL_RESENDS_MAX,
            "seed": draw.randrange(1 << 30),
        }
        self.cluster = self._with_nics(layout) if self.by_nic else self._without(layout)
        assert GuardedMemory.made, "nodes are made elsewhere now: none has guard pages"
        self._open()
        self.handler = self.cluster.handlers[0]
        self._requests: list[tuple[Any, Any]] = []

    def _without(self, layout: dict[str, Any]) -> Any:
        from support.virtual_cluster import VirtualCluster

        cluster = VirtualCluster(mtu=self.mtu, **layout)
        cluster.wire = self._wire
        return cluster

    def _with_nics(self, layout: dict[str, Any]) -> Any:
        from support.virtual_cluster import NicCluster

        from shrimpmx.settings.faults import LinkFaults
        from shrimpmx.settings.nic import NicParameters

        faults = LinkFaults(
            loss=LOST, duplicate=DOUBLED, reorder=LATE, reorder_degree=3, seed=layout["seed"]
        )
        parameters = NicParameters(mtu=self.mtu, coalescing="open-mx")
        return NicCluster(
            parameters,
            faults,
            link_ring_entries=FRAME_SLOTS,
            rx_ring_entries=FRAME_SLOTS,
            copy_offload=True,
            copy_message_bytes=1,
            copy_frame_bytes=1,
            **layout,
        )

    def _open(self) -> None:
        from shrimpmx.settings.mx import MxParameters

        parameters = MxParameters(
            resend_delay_ns=RESEND_NS,
            ack_delay_ns=ACK_NS,
            memory=self.draw.choice(("auto", "heap", "process-vm", "bounce")),
        )
        self.ends = [
            self.cluster.open(node, parameters=parameters, session_id=SESSION_ID) for node in (0, 1)
        ]
        self.partners = [self.cluster.connect(end, 1 - node) for node, end in enumerate(self.ends)]

    def _wire(self, frame: bytes) -> list[tuple[int, bytes]]:
        self._note(frame)
        drawn = self.draw.random()
        if drawn < LOST:
            return []
        if drawn < LOST + LATE:
            return [(LATE_NS, frame)]
        return [(DELAY_NS, frame)] * (2 if drawn < LOST + LATE + DOUBLED else 1)

    def _note(self, frame: bytes) -> None:
        if len(frame) > 5 and frame[5] == 0:
            self.recent = [*self.recent[-63:], frame]

    def take(self, frame: bytes, finish: bool) -> None:
        """A frame comes to the first node; `finish`: the last of a batch."""
        if not self.by_nic:
            self.handler.handle_frame(frame, finish)
            return
        from shrimpmx.shared.node import put_frame

        # What is too long for a slot the link would not carry.
        put_frame(self.cluster.nodes[0], "link", 1, frame[: self.mtu], self.cluster.now_ns)
        if finish:
            self.cluster.step()

    def work(self) -> None:
        """A few messages each way, and time passes."""
        from shrimpmx.errors import MxError

        for end, partner in zip(self.ends, self.partners, strict=True):
            try:
                if len(self._requests) < REQUESTS:
                    self._post(end, partner)
            except MxError:
                return  # its partner was given up: as it should be
        for _ in range(4):
            if self.by_nic:
                self._peek()
            self.cluster.step()
        self._requests = [one for one in self._requests if not self._has_ended(*one)]
        self.cluster.control.set_virtual_ns(
            self.cluster.now_ns + self.draw.choice((1000, LATE_NS, 1_000_000))
        )
        self.cluster.frames.clear()

    def _post(self, end: Any, partner: Any) -> None:
        draw = self.draw
        size, room = draw.choice(SIZES), draw.choice(SIZES)
        sends = [end.isend, end.isend, end.issend]
        posted = [
            functools.partial(end.irecv, bytearray(max(size, room)), 0, 0),
            functools.partial(draw.choice(sends), bytes(size), partner, 7),
        ]
        if draw.random() < 0.1:
            parts = [bytearray(size // 3), bytearray(room // 2), bytearray(size)]
            posted = [
                functools.partial(end.irecvv, parts, 0, 0),
                functools.partial(end.isendv, [bytes(part) for part in parts], partner, 7),
            ]
        elif draw.random() < 0.1:
            posted[0] = functools.partial(end.irecv, bytearray(room), 0, 0)  # may be too short
        for call in posted:
            self._requests.append((end, call()))

    def _has_ended(self, end: Any, request: Any) -> bool:
        if self.draw.random() < CANCELLED and end.cancel(request):
            return True
        return end.test(request) is not None

    def _peek(self) -> None:
        from shrimpmx.shared.node import peek_frames

        for _, frame in peek_frames(self.cluster.nodes[0], "link", 1):
            self._note(frame)

    def check(self) -> None:
        """Each frame that the handler saw was a legal one or a counted drop."""
        counts = self.cluster.control.agent_counters(0)
        sums = ("recv_packets", "recv_other_bytes", "recv_other_delay_ns")
        names = [n for n in counts if n.startswith(("recv_", "drop_")) and n not in sums]
        kept = sum(counts[n] for n in (*names, "unexp_eventq_full"))
        assert kept == counts["recv_packets"], {n: c for n, c in counts.items() if c}
