"""Nodes in anonymous memory under the virtual clock, and a handler driven by hand."""

from __future__ import annotations

import ctypes

from shrimpmx.link.rings import ring_links
from shrimpmx.nic.firmware import Firmware
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node, take_frames
from shrimpmx.shared.private import private_node
from shrimpmx.shared.sizes import STEERING_FLOW_BYTES
from support.memory import (
    CORE_BYTES,
    VECTOR_BYTES,
    WISH_AT,
    make_control,
    word32,
)
from support.packets import SmallPacket, TinyPacket, encode, node_address

WANTED_OFFSET, QUEUE_OFFSET = 0, 4  # in struct steering_flow

# A link and a DMA engine whose times can be added up in one's head.
PLAIN = NicParameters(
    link_bits_per_second=0, link_delay_ns=100, dma_latency_ns=50, dma_bytes_per_second=0
)


class Nodes:
    """A control segment and `count` nodes; node i's NIC is agent i."""

    def __init__(self, count: int = 2, cores: int = 1, **layout: object) -> None:
        runners = ["nic", "irq"]
        agents = [(f"node{i}.nic", "nic", 0) for i in range(count)] + [("irq", "irq", 1)]
        self.control = make_control(runners, agents, count)
        self.cores = cores
        self.layouts = [
            NodeLayout(
                index=i,
                nodes_count=count,
                cores=cores,
                nic_agent=i,
                core_runners=[1] * cores,
                core_agents=[count] * cores,
                **layout,  # type: ignore[arg-type]
            )
            for i in range(count)
        ]
        self.nodes = [private_node(self.control, one.place()) for one in self.layouts]

    def __getitem__(self, index: int) -> Node:
        return self.nodes[index]

    def counters(self, index: int) -> dict[str, int]:
        """Counters of node `index`'s NIC that are not 0, without its steps."""
        counters = self.control.agent_counters(index)
        return {name: n for name, n in counters.items() if n and name != "steps"}

    def _word(self, index: int, offset: int) -> ctypes.c_uint32:
        return word32(self.nodes[index].segment, offset)

    def _vector_word(self, index: int, vector: int, offset: int) -> ctypes.c_uint32:
        start = self.layouts[index].vectors_offset + vector * VECTOR_BYTES
        return self._word(index, start + offset)

    def _flow_word(self, index: int, endpoint: int, offset: int) -> ctypes.c_uint32:
        start = self.layouts[index].flows_offset + endpoint * STEERING_FLOW_BYTES
        return self._word(index, start + offset)

    def token(self, index: int = 0, vector: int = 0) -> ctypes.c_uint32:
        """Claim token of a vector: 1 while the NIC may raise."""
        return self._vector_word(index, vector, 0)

    def wish(self, index: int = 0, vector: int = 0) -> int:
        """Whether the NIC waits for the token of a vector."""
        return self._vector_word(index, vector, WISH_AT).value

    def wanted(self, endpoint: int, index: int = 0) -> ctypes.c_uint32:
        """The queue, + 1, that handlers want an endpoint's frames in; 0: as it is."""
        return self._flow_word(index, endpoint, WANTED_OFFSET)

    def flow(self, endpoint: int, index: int = 0) -> int:
        """The queue that an endpoint's frames go to by the flow table."""
        return self._flow_word(index, endpoint, QUEUE_OFFSET).value

    def take_interrupts(self, index: int = 0, vector: int | None = None) -> list[int]:
        """Cores that are interrupted, by `vector` if one is named; that is no longer pending."""
        mask = 0xFFFFFFFF if vector is None else 1 << vector
        interrupted = []
        for core in range(self.cores):
            offset = self.layouts[index].cores_offset + core * CORE_BYTES
            pending = self._word(index, offset)
            if pending.value & mask:
                interrupted.append(core)
                pending.value &= ~mask
        return interrupted


class Handler:
    """A vector's interrupt handler in slow motion: the test says when it polls and when it ends."""

    def __init__(self, nodes: Nodes, index: int = 0, vector: int = 0) -> None:
        self.nodes = nodes
        self.index = index
        self.vector = vector
        self.running = False
        self.interrupts = 0
        self.frames: list[tuple[int, bytes]] = []

    def see_interrupt(self) -> bool:
        """Start if the NIC raised; there is never more than one interrupt outstanding."""
        cores = self.nodes.take_interrupts(self.index, self.vector)
        assert len(cores) <= 1
        if cores:
            assert not self.running, "an interrupt although the handler holds the token"
            assert self.nodes.token(self.index, self.vector).value == 0
            self.running = True
            self.interrupts += 1
        return self.running

    def poll(self, budget: int = 64) -> int:
        """Take up to `budget` frames; returns how many."""
        assert self.running
        taken = take_frames(self.nodes[self.index], "rx", self.vector, budget)
        self.frames += taken
        return len(taken)

    def end(self) -> None:
        """Hand the token back."""
        assert self.running
        self.running = False
        self.nodes.token(self.index, self.vector).value = 1

    def serve(self) -> bool:
        """Handle an interrupt from start to end; False if there is none."""
        if not self.see_interrupt():
            return False
        while self.poll():
            pass
        self.end()
        return True


def frame(
    number: int = 0,
    destination: int = 0,
    source: int = 1,
    marked: bool = True,
    endpoint: int = 0,
) -> bytes:
    """A tiny message for `endpoint` whose data is its number."""
    return encode(
        TinyPacket(
            dst_endpoint=endpoint,
            destination=node_address(destination),
            source=node_address(source),
            peer_index=source,
            marked=marked,
            data=number.to_bytes(8, "little"),
        )
    )


def small_frame(length: int = 128, destination: int = 0, source: int = 1) -> bytes:
    """A marked small message of `length` bytes: a frame of length + 40."""
    return encode(
        SmallPacket(
            destination=node_address(destination),
            source=node_address(source),
            peer_index=source,
            marked=True,
            data=bytes(length),
        )
    )


def make_firmware(
    nodes: Nodes, index: int = 0, *, parameters: NicParameters = PLAIN, **changes: object
) -> Firmware:
    """Firmware of node `index` with PLAIN parameters but for `changes`."""
    parameters = parameters.model_copy(update=changes)
    links = ring_links(nodes.nodes, index, parameters)
    return Firmware(nodes[index], *links, parameters)


def run(agents: list[Agent], start_ns: int, end_ns: int, handlers: list[Handler]) -> int:
    """Step agents whenever one is due, handlers in between; returns the last time used."""
    now_ns = start_ns
    while True:
        busy = True
        while busy:
            done = [agent.step_at(now_ns) for agent in agents]
            # A NIC that waits for the token is woken when the handler returns it.
            served = [handler.serve() for handler in handlers]
            busy = any(done) or any(served)
        due = [agent.due_ns for agent in agents if agent.due_ns is not None]
        if not due or min(due) > end_ns:
            return now_ns
        now_ns = max(now_ns + 1, min(due))
