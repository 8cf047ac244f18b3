"""Nodes, receive handlers and MX endpoints in one process, under a virtual clock.

Frames are carried by a shuttle instead of NICs: each frame that an endpoint or handler
sends passes the cluster's `wire`, a function from a frame to the list of (delay in ns,
frame) that arrive, so that a test decides what is lost, doubled, late or damaged. The
order in which endpoints run and rings are served is drawn from a seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shrimpmx.costs.meter import Prices
from shrimpmx.host import pull
from shrimpmx.host.copy_offload import CopyAgent
from shrimpmx.host.receive_handler import ReceiveHandler
from shrimpmx.host.rx_poll import BusyPoll
from shrimpmx.link.rings import ring_links
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request, Status
from shrimpmx.nic.firmware import Firmware
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node, take_frames
from shrimpmx.shared.private import private_node
from shrimpmx.wait.waiter import Waiter
from support.agents import make_irq
from support.loop import EventLoop
from support.memory import make_control
from support.packets import decode

DELAY_NS = 1_000
MILLISECOND = 1_000_000
TICKS_PER_RESEND_DELAY = 4  # of the handlers, for their pulls
PTYPE_BYTE = 16
# Of each endpoint; address space only, until a test uses it.
HEAP_BYTES = 16 << 20
MARK = 0x80
SUSPEND_NS = MILLISECOND  # of ranks that poll
TYPES = {
    35: "truc", 36: "connect", 37: "tiny", 38: "small", 39: "medium_frag", 40: "rndv",
    41: "pull_request", 42: "pull_reply", 43: "notify", 44: "nack_lib", 45: "nack_mcp",
}  # fmt: skip

Wire = Callable[[bytes], list[tuple[int, bytes]]]


def frame_type(frame: bytes) -> str:
    return TYPES[frame[PTYPE_BYTE] & ~MARK]


def is_marked(frame: bytes) -> bool:
    return bool(frame[PTYPE_BYTE] & MARK)


def perfect_wire(frame: bytes) -> list[tuple[int, bytes]]:
    return [(DELAY_NS, frame)]


@dataclass
class FaultyWire:
    """Rates per frame; `only` names the types that faults apply to (empty: all).

    A damaged frame arrives with one bit of its frame check sequence wrong, as far as the
    receiver can tell: the NIC drops it. `reorder` holds a frame back for `degree` frame times.
    """

    rng: random.Random
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    degree: int = 1
    only: tuple[str, ...] = ()

    def __call__(self, frame: bytes) -> list[tuple[int, bytes]]:
        if self.only and frame_type(frame) not in self.only:
            return perfect_wire(frame)
        draw = self.rng.random
        if draw() < self.loss:
            return []
        arrivals = [(DELAY_NS, frame)]
        if draw() < self.reorder:
            arrivals = [(DELAY_NS * (1 + self.degree), frame)]
        if draw() < self.duplicate:
            arrivals.append((DELAY_NS * self.rng.randint(1, 1 + self.degree), frame))
        return arrivals


class VirtualCluster(EventLoop):
    """`nodes` nodes of one core, or more that count together; endpoints are opened by `open`."""

    def __init__(
        self,
        nodes: int = 2,
        endpoints: int = 1,
        mtu: int = 1500,
        wire_format: str = "native",
        seed: int = 1,
        event_ring_entries: int = 1024,
        event_ring: str = "lock-free",
        tx_ring_entries: int = 256,
        rx_ring_entries: int = 16,
        link_ring_entries: int = 16,
        clock: str = "virtual",
        heap_bytes: int = HEAP_BYTES,
        pull_resend_delay_ns: int = 1000 * MILLISECOND,
        resends_max: int = 1000,
        cores: int = 1,
        **more: Any,
    ) -> None:
        self.rng = random.Random(seed)
        self.busy_poll = more.get("busy_poll", 0)
        self.wire: Wire = perfect_wire
        self.frames: list[bytes] = []
        self.endpoints: list[Endpoint] = []
        self._in_flight: list[tuple[int, int, bytes]] = []
        self._frames_count = 0
        self._tick_ns = pull_resend_delay_ns // TICKS_PER_RESEND_DELAY
        runners = ["host", *(f"rank{i}" for i in range(nodes)), "dma"]
        agents = [(f"node{i}.irq0", "irq", 0) for i in range(nodes)]
        agents += [(f"node{i}.nic", "nic", 0) for i in range(nodes)]
        agents += [(f"node{i}.dma", "dma", nodes + 1) for i in range(nodes)]
        self.control = make_control(runners, agents, nodes, clock)
        self.nodes: list[Node] = []
        for index in range(nodes):
            layout = NodeLayout(
                index=index, nodes_count=nodes, endpoints=endpoints, mtu=mtu,
                wire_format=wire_format,
                rx_ring_entries=rx_ring_entries, tx_ring_entries=tx_ring_entries,
                link_ring_entries=link_ring_entries,
                event_ring_entries=event_ring_entries, event_ring=event_ring,
                cores=cores, core_runners=[0] * cores, core_agents=[index] * cores,
                nic_agent=nodes + index, heap_bytes=heap_bytes,
                pull_resend_delay_ns=pull_resend_delay_ns, resends_max=resends_max,
                dma_agent=2 * nodes + index, **more,
            )  # fmt: skip
            self.nodes.append(private_node(self.control, layout))
        self.handlers = [ReceiveHandler(node, 0, i) for i, node in enumerate(self.nodes)]
        self._rings = [(node, "core_tx", 0) for node in self.nodes]
        self._rings += [(node, "endpoint_tx", e) for node in self.nodes for e in range(endpoints)]

    def open(
        self,
        node: int,
        index: int = 0,
        parameters: MxParameters | None = None,
        key: int = 0,
        session_id: int | None = None,
        first_seqnum: int = 1,
        waiter: Waiter | None = None,
    ) -> Endpoint:
        endpoint = Endpoint(
            self.nodes[node], index, 1 + node, waiter, parameters, key=key, session_id=session_id,
            first_seqnum=first_seqnum, busy_poll=self._busy_poll(node),
        )  # fmt: skip
        self.endpoints.append(endpoint)
        return endpoint

    def _busy_poll(self, node: int) -> BusyPoll | None:
        return BusyPoll(self.nodes[node], 0, SUSPEND_NS) if self.busy_poll else None

    def close(self, endpoint: Endpoint) -> None:
        self.endpoints.remove(endpoint)
        endpoint.close()

    def pair(
        self, parameters: MxParameters | None = None, first_seqnum: int = 1
    ) -> tuple[Endpoint, Endpoint, Partner]:
        """Endpoints of nodes 0 and 1, and the second as the partner of the first."""
        one = self.open(0, parameters=parameters, first_seqnum=first_seqnum)
        other = self.open(1, parameters=parameters, first_seqnum=first_seqnum)
        partner = self.connect(one, 1)
        self.frames.clear()
        return one, other, partner

    def connect(self, endpoint: Endpoint, node: int, index: int = 0, key: int = 0) -> Partner:
        status = self.wait(endpoint, endpoint.iconnect(node, index, key))
        assert status.code == "success", status
        assert status.source is not None
        return status.source

    # -- time ----------------------------------------------------------------

    def carry(self) -> int:
        """Take what was sent onto the wire and deliver what is due; returns the frames moved."""
        moved = 0
        for handler in self.handlers if self.is_pulling() else ():
            handler.tick_at(self.now_ns)
        rings = self._rings[:]
        self.rng.shuffle(rings)
        for node, which, index in rings:
            for _, frame in take_frames(node, which, index):
                self.frames.append(frame)
                moved += 1
                for delay_ns, arriving in self.wire(frame):
                    self._frames_count += 1
                    heapq.heappush(
                        self._in_flight, (self.now_ns + delay_ns, self._frames_count, arriving)
                    )
        while self._in_flight and self._in_flight[0][0] <= self.now_ns:
            _, _, frame = heapq.heappop(self._in_flight)
            destination = int.from_bytes(frame[4:6], "big")
            self.handlers[destination].handle_frame(frame)
            moved += 1
        return moved

    def is_pulling(self) -> bool:
        """Whether any pull has not ended: then the handlers' clock ticks."""
        return any(pull.active(n, e) for n in self.nodes for e in range(n.endpoints_count))

    def step(self) -> bool:
        """Run every endpoint and the wire once, in a drawn order; True if anything happened."""
        happened = False
        endpoints = self.endpoints[:]
        self.rng.shuffle(endpoints)
        for endpoint in endpoints:
            happened |= endpoint.progress() > 0
        return bool(self.carry()) or happened

    def next_due_ns(self) -> int | None:
        due = [e.next_timer_ns for e in self.endpoints]
        if self._in_flight:
            due.append(self._in_flight[0][0])
        if self.is_pulling():
            due.append((self.now_ns // self._tick_ns + 1) * self._tick_ns)
        return min((ns for ns in due if ns is not None), default=None)

    def settle(self) -> None:
        """Step until nothing happens, without timers: only frames in flight move time."""
        while self.step() or self._in_flight:
            if self._in_flight:
                self.control.set_virtual_ns(max(self.now_ns, self._in_flight[0][0]))

    # -- calls that complete ---------------------------------------------------

    def wait(self, endpoint: Endpoint, request: Request) -> Status:
        done: list[Status] = []

        def test() -> bool:
            status = endpoint.test(request)
            if status is not None:
                done.append(status)
            return bool(done)

        self.until(test)
        return done[0]

    def frames_of(self, *types: str) -> list[bytes]:
        return [frame for frame in self.frames if frame_type(frame) in types]

    def packets(self, *types: str) -> list[object]:
        return [decode(frame) for frame in self.frames_of(*types)]


class NicCluster(VirtualCluster):
    """The same with real firmware, links and interrupt agents instead of the shuttle."""

    def __init__(
        self,
        parameters: NicParameters,
        faults: LinkFaults | None = None,
        nodes: int = 2,
        seed: int = 1,
        event_ring_entries: int = 1024,
        rx_ring_entries: int = 256,
        link_ring_entries: int = 256,
        clock: str = "virtual",
        copy_offload: bool = False,
        copy_rate: int = 0,
        irq: dict[str, int] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(
            nodes, mtu=parameters.mtu, seed=seed, event_ring_entries=event_ring_entries,
            rx_ring_entries=rx_ring_entries, link_ring_entries=link_ring_entries, clock=clock,
            **({"dma_runner": nodes + 1} if copy_offload else {}), **more,
        )  # fmt: skip
        self.nics = [
            Firmware(node, *ring_links(self.nodes, i, parameters, faults), parameters)
            for i, node in enumerate(self.nodes)
        ]
        self.interrupts = [
            make_irq(node, core, i, **(irq or {}))
            for i, node in enumerate(self.nodes)
            for core in range(node.cores_count)
        ]
        prices = Prices({"copy_engine_bytes_per_second": copy_rate})
        self.copiers = (
            [CopyAgent(node, 2 * nodes + i, prices) for i, node in enumerate(self.nodes)]
            if copy_offload
            else []
        )

    def carry(self) -> int:
        agents: list[Agent] = [*self.nics, *self.interrupts, *self.copiers]
        self.rng.shuffle(agents)
        now_ns = self.control.now_ns()
        return sum([agent.step_at(now_ns) for agent in agents])

    def next_due_ns(self) -> int | None:
        due = [super().next_due_ns(), *(a.due_ns for a in (*self.nics, *self.interrupts))]
        return min((ns for ns in due if ns is not None), default=None)

    def nic_counters(self, node: int) -> dict[str, int]:
        return self.control.agent_counters(len(self.nodes) + node)

    def dma_counters(self, node: int) -> dict[str, int]:
        return self.control.agent_counters(2 * len(self.nodes) + node)

    def settle(self) -> None:
        """Pass ten milliseconds: what is on the way arrives, no delayed ack is due."""
        self.advance(10 * MILLISECOND)


def pattern(length: int, number: int = 0) -> bytes:
    """Bytes that differ by place and by message number."""
    place = np.arange(length, dtype=np.uint32)
    return (place * 7 + (place >> 8) + number * 31).astype(np.uint8).tobytes()
