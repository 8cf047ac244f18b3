"""A node in private memory for tests of the driver, and the frames that reach it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.host.receive_handler import ReceiveHandler
from shrimpmx.native.futex import WaitSlotView
from shrimpmx.native.segment import Segment
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node
from support.agents import make_irq
from support.eager_packets import (
    ConnectPacket,
    MediumFragmentPacket,
    NackLibPacket,
    SmallPacket,
    TinyPacket,
    TrucPacket,
)
from support.large_packets import NotifyPacket, RndvPacket
from support.packet_base import Packet
from support.packets import encode

CONTROL_KIND, NODE_KIND, HEAP_KIND = 1, 2, 4
NIC, CORE0, CORE1, RANK = 0, 1, 2, 3  # runners, and agents
# Sizes and offsets of layout.h.
RUNNERS_OFFSET_AT, RUNNER_BYTES = 152, 256
AGENTS_OFFSET_AT, AGENT_BYTES, AGENT_COUNTERS_AT = 160, 64 + 8 * 144, 64
CORE_BYTES, VECTOR_BYTES, WISH_AT, RAISED_AT, PID_AT = 320, 64, 24, 56, 144
RING_TAIL_AT = 64
SESSION = 0x1234
PEER = 1  # the node that the frames come from
PACKETS: dict[str, type[Packet]] = {
    kind.NAME: kind
    for kind in (
        ConnectPacket,
        MediumFragmentPacket,
        NackLibPacket,
        NotifyPacket,
        RndvPacket,
        SmallPacket,
        TinyPacket,
        TrucPacket,
    )
}


def node_address(index: int) -> bytes:
    return bytes([0x02, 0x5A, 0, 0, index >> 8, index & 0xFF])


def core_agent(core: int) -> int:
    """The runner, and agent, of a core's interrupts: those beyond the second follow the rank."""
    return CORE0 + core if core < 2 else RANK + core - 1


def frame(kind: str, peer: int = PEER, **fields: Any) -> bytes:
    """A frame for node 0 from `peer`; for endpoint 0 and SESSION unless told otherwise."""
    fields = {"source": node_address(peer), "peer_index": peer, "src_endpoint": 3, **fields}
    if kind not in ("connect", "nack_lib"):
        fields.setdefault("session", SESSION)
    return encode(PACKETS[kind](destination=node_address(0), **fields))


@dataclass
class HostNode:
    """A node of a cluster under test, 0 by default: two cores, or `cores`, and the driver on it."""

    control: Control
    layout: NodeLayout
    node: Node
    endpoints: list[DriverEndpoint]
    handlers: list[ReceiveHandler]

    @classmethod
    def make(
        cls, *, start_index: int = 0, opened: bool = True, cores: int = 2, **layout: Any
    ) -> HostNode:
        further = range(2, cores)
        runners = ["nic", "irq0", "irq1", "rank0", *[f"irq{core}" for core in further]]
        agents = [
            ("node0.nic", "nic", NIC),
            ("node0.irq0", "irq", CORE0),
            ("node0.irq1", "irq", CORE1),
            ("rank0", "rank", RANK),
            *[(f"node0.irq{core}", "irq", core_agent(core)) for core in further],
        ]
        memory = Segment.anonymous(Control.size_bytes(len(runners), len(agents)), CONTROL_KIND)
        settings: dict[str, Any] = {
            "nodes_count": 3,
            "cores": cores,
            "endpoints": 2,
            "core_runners": [core_agent(core) for core in range(cores)],
            "core_agents": [core_agent(core) for core in range(cores)],
            "rx_ring_entries": 256,
            "tx_ring_entries": 16,
            "link_ring_entries": 16,
            "event_ring_entries": 16,
        }
        place = NodeLayout(**{**settings, **layout})
        control = Control.create(memory, runners, agents, place.nodes_count, "virtual")
        segment = Segment.anonymous(Node.size_bytes(place), NODE_KIND)
        heap = Segment.anonymous(place.heap_segment_bytes, HEAP_KIND) if place.heap_bytes else None
        node = Node.create(segment, control, place, heap)
        endpoints = [DriverEndpoint(node, i, RANK, RANK) for i in range(place.endpoints)]
        if opened:
            endpoints[0].open(SESSION, start_index)
        handlers = [ReceiveHandler(node, core, core_agent(core)) for core in range(place.cores)]
        return cls(control, place, node, endpoints, handlers)

    @property
    def endpoint(self) -> DriverEndpoint:
        return self.endpoints[0]

    def receive(self, *frames: bytes, core: int = 0) -> None:
        for each in frames:
            self.handlers[core].handle_frame(each)

    def events(self, endpoint: int = 0) -> list[dict[str, Any]]:
        """All events that wait, consumed."""
        return list(iter(self.endpoints[endpoint].take_event, None))

    def counters(self, agent: int = CORE0) -> dict[str, int]:
        """The counters that are not zero."""
        return {name: count for name, count in self.control.agent_counters(agent).items() if count}

    def irq(self, core: int = 0, **options: int) -> InterruptAgent:
        return make_irq(self.node, core, core_agent(core), **options)

    # -- words of the segments that a test plays the other side of ----

    def wait_slot(self, runner: int) -> WaitSlotView:
        """The wait slot of a process."""
        memory = self.control.segment.view()
        start: int = struct.unpack_from("<Q", memory, RUNNERS_OFFSET_AT)[0]
        return WaitSlotView(memory, start + RUNNER_BYTES * runner)

    def word(self, agent: int, counter: str) -> memoryview:
        """One counter of an agent as memory: [0] is its value now."""
        memory = self.control.segment.view()
        start: int = struct.unpack_from("<Q", memory, AGENTS_OFFSET_AT)[0]
        index = list(self.control.agent_counters(agent)).index(counter)
        start += AGENT_BYTES * agent + AGENT_COUNTERS_AT + 8 * index
        return memory[start : start + 8].cast("Q")

    def set_pid(self, pid: int) -> None:
        """The process that endpoint 0 says it belongs to."""
        place = self.layout.endpoints_offset + PID_AT
        struct.pack_into("<I", self.node.segment.view(), place, pid)

    def raise_interrupt(self, vector: int = 0, core: int = 0, now_ns: int = 0) -> None:
        """What a NIC does with the token in hand."""
        self.set_token(0, vector)
        place = self.layout.vectors_offset + VECTOR_BYTES * vector + RAISED_AT
        struct.pack_into("<q", self.node.segment.view(), place, now_ns)
        place = self.layout.cores_offset + CORE_BYTES * core
        pending: int = struct.unpack_from("<Q", self.node.segment.view(), place)[0]
        struct.pack_into("<Q", self.node.segment.view(), place, pending | 1 << vector)

    def token(self, vector: int = 0) -> int:
        place = self.layout.vectors_offset + VECTOR_BYTES * vector
        value: int = struct.unpack_from("<I", self.node.segment.view(), place)[0]
        return value

    def set_token(self, value: int, vector: int = 0) -> None:
        place = self.layout.vectors_offset + VECTOR_BYTES * vector
        struct.pack_into("<I", self.node.segment.view(), place, value)

    def ring_tail(self, vector: int = 0) -> int:
        """Frames that have been taken from a vector's rx ring so far."""
        place = self.layout.rx_rings_offset + self.layout.rx_stride * vector + RING_TAIL_AT
        value: int = struct.unpack_from("<I", self.node.segment.view(), place)[0]
        return value

    def set_wish(self, value: int, vector: int = 0) -> None:
        place = self.layout.vectors_offset + VECTOR_BYTES * vector + WISH_AT
        struct.pack_into("<I", self.node.segment.view(), place, value)
