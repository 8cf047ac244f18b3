"""A node in private memory for tests of the driver, and the frames that reach it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.host.receive_handler import ReceiveHandler
from shrimpmx.native.futex import WaitSlotView
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node
from shrimpmx.shared.private import private_node
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
from support.memory import (
    CORE_BYTES,
    RAISED_AT,
    VECTOR_BYTES,
    WISH_AT,
    counter,
    make_control,
    runner_place,
    word32,
    word64,
)
from support.packet_base import Packet
from support.packets import encode, node_address

NIC, CORE0, CORE1, RANK = 0, 1, 2, 3  # runners, and agents
PID_AT = 144  # in struct endpoint_descriptor
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
        control = make_control(runners, agents, place.nodes_count)
        node = private_node(control, place)
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
        return WaitSlotView(self.control.segment.view(), runner_place(self.control, runner))

    def count(self, agent: int, name: str) -> ctypes.c_uint64:
        """One counter of an agent as it stands in memory."""
        return counter(self.control, agent, self.control.agent_info(agent)["kind"], name)

    def set_pid(self, pid: int) -> None:
        """The process that endpoint 0 says it belongs to."""
        self._word(self.layout.endpoints_offset + PID_AT).value = pid

    def raise_interrupt(self, vector: int = 0, core: int = 0, now_ns: int = 0) -> None:
        """What a NIC does with the token in hand."""
        self.set_token(0, vector)
        raised = word64(self.node.segment, self._vector(vector) + RAISED_AT)
        raised.value = now_ns
        pending = word64(self.node.segment, self.layout.cores_offset + CORE_BYTES * core)
        pending.value |= 1 << vector

    def token(self, vector: int = 0) -> int:
        return self._word(self._vector(vector)).value

    def set_token(self, value: int, vector: int = 0) -> None:
        self._word(self._vector(vector)).value = value

    def set_wish(self, value: int, vector: int = 0) -> None:
        self._word(self._vector(vector) + WISH_AT).value = value

    def ring_tail(self, vector: int = 0) -> int:
        """Frames that have been taken from a vector's rx ring so far."""
        start = self.layout.rx_rings_offset + self.layout.rx_stride * vector
        return self._word(start + RING_TAIL_AT).value

    def _vector(self, vector: int) -> int:
        return self.layout.vectors_offset + VECTOR_BYTES * vector

    def _word(self, place: int) -> ctypes.c_uint32:
        return word32(self.node.segment, place)
