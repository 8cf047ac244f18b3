"""All that surrounds the node under test: far node, NICs, link, dma agent, and the clock.

They run in this process, outside of the simulation, and take turns with the node under test: it
reports when it next wants to run, every agent here runs until nothing is left to do, and only when
neither side has anything to do does the virtual clock go on.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shrimpmx.errors import MxError
from shrimpmx.host.copy_offload import CopyAgent
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.link.rings import ring_links
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request
from shrimpmx.native.segment import (
    SEGMENT_CONTROL,
    SEGMENT_HEAP,
    SEGMENT_NODE,
    RunIdentity,
    Segment,
)
from shrimpmx.nic.firmware import Firmware
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.node import Node
from shrimpmx.shared.sizes import NO_RUNNER

# Processes and agents by their indices. Node 1 is under test.
RUNNERS = ["others", "rank0", "rank1"]
IRQ, NIC, DMA = 0, 2, 4
AGENTS = [
    *((f"node{node}.irq0", "irq", 0) for node in range(2)),
    *((f"node{node}.nic", "nic", 0) for node in range(2)),
    *((f"node{node}.dma", "dma", 0) for node in range(2)),
]
UNDER_TEST = 1
HOST = HostParameters(cores=1)
POLLS = HOST.irq_budget, HOST.irq_demote_after
# A report of the node under test: when it next wants to run, ns, and whether it did anything.
REPORT = struct.Struct("<qq")
NEVER_NS = 2**63 - 1
Rounds = Sequence[tuple[int, int, int]]


class Surroundings:
    """The memory of two nodes, and every agent but those of node 1's core.

    `rx_ring_entries`: so many packets can come before a slot of the rx ring is used again.
    """

    def __init__(self, rx_ring_entries: int, copy_offload: bool) -> None:
        self._segments: list[Segment] = []
        self._identity = RunIdentity.of_this_process()
        self._nic = NicParameters(rx_ring_entries=rx_ring_entries)
        self._copy_offload = copy_offload
        size_bytes = Control.size_bytes(len(RUNNERS), len(AGENTS))
        try:
            self.control = Control.create(
                self._segment("control", size_bytes, SEGMENT_CONTROL), RUNNERS, AGENTS, 2, "virtual"
            )
            self._nodes = [self._node(index) for index in range(2)]
        except BaseException:
            self.close()
            raise
        self._agents: list[Agent] = [
            *(
                Firmware(node, *ring_links(self._nodes, index, self._nic), self._nic)
                for index, node in enumerate(self._nodes)
            ),
            InterruptAgent(self._nodes[0], 0, IRQ, *POLLS),
        ]
        if copy_offload:
            self._agents += [CopyAgent(node, DMA + i) for i, node in enumerate(self._nodes)]

    def _segment(self, what: str, size_bytes: int, kind: int, *, reserve: bool = True) -> Segment:
        segment = Segment.create(self._identity, what, size_bytes, kind, reserve=reserve)
        self._segments.append(segment)
        return segment

    def _node(self, index: int) -> Node:
        layout = NodeLayout.from_parameters(
            self._nic,
            HOST,
            MxParameters(),
            index=index,
            nodes_count=2,
            endpoints=1,
            nic_agent=NIC + index,
            core_agents=[IRQ + index],
            core_runners=[0],
            dma_agent=DMA + index,
            dma_runner=0 if self._copy_offload else NO_RUNNER,
        )
        memory = self._segment(f"node{index}", Node.size_bytes(layout), SEGMENT_NODE)
        heap = self._segment(f"heap{index}", layout.heap_segment_bytes, SEGMENT_HEAP, reserve=False)
        return Node.create(memory, self.control, layout, heap)

    def names(self) -> dict[str, Any]:
        """What the process of the node under test has to know."""
        node = self._nodes[UNDER_TEST]
        assert node.heap_segment is not None
        return {
            "control": self.control.segment.name,
            "node": node.segment.name,
            "heap": node.heap_segment.name,
            "agent": IRQ + UNDER_TEST,
            "polls": POLLS,
            "runner": 1 + UNDER_TEST,
            "mx": MxParameters().model_dump(),
        }

    def play(self, rounds: Rounds, from_node: int, to_node: int, deadline_s: float) -> None:
        """Take turns with the node under test until its process ends.

        Raises TimeoutError if it has not ended after `deadline_s` seconds.
        """
        limit = time.monotonic() + deadline_s
        with self._far_rank() as endpoint:
            exchange = Exchange(endpoint, rounds)
            while len(report := _read_until(limit, from_node)) == REPORT.size:
                due_ns, worked = REPORT.unpack(report)
                if not self._work(exchange) and not worked:
                    self._advance(endpoint, due_ns)
                    self._work(exchange)
                with contextlib.suppress(BrokenPipeError):
                    os.write(to_node, b"g")

    @contextlib.contextmanager
    def _far_rank(self) -> Iterator[Endpoint]:
        endpoint = Endpoint(self._nodes[0], 0, 1)
        try:
            with Heap.of_process(self._nodes[0], 0).use_for_numpy():
                yield endpoint
        finally:
            endpoint.close()

    def _work(self, exchange: Exchange) -> bool:
        """Run all agents here until nothing is left to do now; whether there was anything."""
        worked = False
        while True:
            now_ns = self.control.now_ns()
            done = sum(agent.step_at(now_ns) for agent in self._agents) + exchange.step()
            if not done:
                return worked
            worked = True

    def _advance(self, endpoint: Endpoint, due_ns: int) -> None:
        """Set the clock to the next time at which an agent or the endpoint wants to run."""
        due = [agent.due_ns for agent in self._agents] + [endpoint.next_timer_ns]
        due.append(due_ns if due_ns != NEVER_NS else None)
        wanted = [ns for ns in due if ns is not None]
        if not wanted:
            raise MxError("deadlock in the simulated run: no agent can make progress", "lost")
        self.control.set_virtual_ns(max(min(wanted), self.control.now_ns() + 1))

    def close(self) -> None:
        """Remove and unmap the memory."""
        self._agents, self._nodes = [], []
        for segment in self._segments:
            segment.unlink()
            segment.close()


def _read_until(limit: float, descriptor: int) -> bytes:
    """A report, empty at the end; TimeoutError if there is neither at the time `limit`."""
    left = limit - time.monotonic()
    if left <= 0 or not select.select([descriptor], [], [], left)[0]:
        raise TimeoutError
    return os.read(descriptor, REPORT.size)


class Exchange:
    """The far rank: it sends, receives the answer, and sends again, size after size."""

    def __init__(self, endpoint: Endpoint, rounds: Rounds) -> None:
        self._endpoint = endpoint
        self._rest = [(size, warm + measured) for size, warm, measured in rounds]
        self._partner: Partner | None = None
        self._connecting: Request | None = endpoint.iconnect(UNDER_TEST, 0)
        self._sent: Request | None = None
        self._answer: Request | None = None
        self._outgoing = self._incoming = np.zeros(1, dtype=np.uint8)
        self._left = 0

    def step(self) -> int:
        """A pass of the library, and what the rank does next; how much it did."""
        taken = self._endpoint.progress()
        if self._connecting is not None:
            status = self._endpoint.test(self._connecting)
            if status is None:
                return taken
            self._partner, self._connecting = status.source, None
        if self._sent is not None and self._endpoint.test(self._sent) is not None:
            self._sent = None
        if self._answer is not None and self._endpoint.test(self._answer) is not None:
            self._answer = None
        if self._sent is not None or self._answer is not None or self._partner is None:
            return taken
        if not self._left and not self._rest:
            return taken
        self._send(self._partner)
        return taken + 1

    def _send(self, partner: Partner) -> None:
        if not self._left:
            size_bytes, self._left = self._rest.pop(0)
            self._outgoing = np.zeros(size_bytes, dtype=np.uint8)
            self._incoming = np.zeros(size_bytes, dtype=np.uint8)
        self._left -= 1
        self._answer = self._endpoint.irecv(self._incoming)
        self._sent = self._endpoint.isend(self._outgoing, partner)
