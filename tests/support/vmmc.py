"""Nodes with SHRIMP's NIC and its interrupt handlers in one process, under a virtual clock.

The test plays the processes: it opens them, writes their exports and page words, and sends raw
frames. Or it makes real ones on `VmmcNodes.nodes`, of runner `rank_runner` and agent `rank_agent`.
Node 1 is mostly the sender, node 0 the receiver.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, TypeVar

from shrimpmx.costs.meter import Prices
from shrimpmx.host.interrupts import VmmcInterruptAgent
from shrimpmx.link.rings import ring_links
from shrimpmx.nic.lent import Lending
from shrimpmx.nic.vmmc import VmmcFirmware
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import put_frame
from shrimpmx.shared.private import private_node
from shrimpmx.shared.sizes import HEAP_START_BYTES
from support.loop import EventLoop
from support.memory import make_control, runner_place, word32
from support.vmmc_layout import (
    ANY_NODE,
    CLOSING,
    FLAG_INTERRUPT,
    LETTER,
    LETTER_LIBRARY,
    MAP_REQUEST,
    OPEN,
    UPDATE,
    Core,
    Export,
    Import,
    Letter,
    Page,
    Process,
    Ring,
    WaitSlot,
    vmmc_frame,
)

LINK_NS, DMA_NS = 100, 50
# A link and a DMA engine whose times can be added up in one's head.
PLAIN_VMMC = NicParameters(
    nic_kind="vmmc",
    link_bits_per_second=0,
    link_delay_ns=LINK_NS,
    dma_latency_ns=DMA_NS,
    dma_bytes_per_second=0,
)
ARMED_BLOCK, ARMED_NOTIFY = 1, 2
CLOSING_OFFSET = 88  # in struct vmmc_node

T = TypeVar("T", bound=ctypes.Structure)
Words = ctypes.Array[ctypes.c_uint32]
Bytes = ctypes.Array[ctypes.c_uint8]


class VmmcNodes(EventLoop):
    """`nodes` nodes of `endpoints` processes each; every process has a runner and an agent."""

    def __init__(
        self,
        nodes: int = 2,
        endpoints: int = 1,
        cores: int = 1,
        heap_bytes: int = 1 << 16,
        parameters: NicParameters = PLAIN_VMMC,
        interrupt_time_ns: int = 0,
        link_ring_entries: int = 256,
        tx_ring_entries: int = 256,
        clock: str = "virtual",
        lends: bool = False,
    ) -> None:
        self.endpoints, self.cores = endpoints, cores
        ranks = [(n, e) for n in range(nodes) for e in range(endpoints)]
        runners = ["host", *(f"rank{n}.{e}" for n, e in ranks)]
        agents = [(f"node{n}.irq{c}", "irq", 0) for n in range(nodes) for c in range(cores)]
        agents += [(f"node{n}.nic", "nic", 0) for n in range(nodes)]
        agents += [(f"rank{n}.{e}", "rank", 1 + i) for i, (n, e) in enumerate(ranks)]
        self.first_nic = nodes * cores
        self.first_rank = self.first_nic + nodes
        self.control = make_control(runners, agents, nodes, clock)
        self.layouts = [
            NodeLayout(
                index=n,
                nodes_count=nodes,
                endpoints=endpoints,
                cores=cores,
                mtu=parameters.mtu,
                vmmc=True,
                nic_agent=self.first_nic + n,
                core_runners=[0] * cores,
                core_agents=[n * cores + c for c in range(cores)],
                link_ring_entries=link_ring_entries,
                tx_ring_entries=tx_ring_entries,
                heap_bytes=heap_bytes,
            ).place()
            for n in range(nodes)
        ]
        self.nodes = [private_node(self.control, layout) for layout in self.layouts]
        lending = Lending(self.nodes) if lends else None
        self.nics = [
            VmmcFirmware(node, *ring_links(self.nodes, n, parameters), parameters, lending)
            for n, node in enumerate(self.nodes)
        ]
        prices = Prices({"interrupt_time_ns": interrupt_time_ns})
        self.handlers = [
            VmmcInterruptAgent(node, c, n * cores + c, prices)
            for n, node in enumerate(self.nodes)
            for c in range(cores)
        ]

    # -- identities ----------------------------------------------------------

    def rank_runner(self, node: int, endpoint: int = 0) -> int:
        """Index of the runner of a process."""
        return 1 + node * self.endpoints + endpoint

    def rank_agent(self, node: int, endpoint: int = 0) -> int:
        """Index of the agent of a process."""
        return self.first_rank + node * self.endpoints + endpoint

    def nic_counters(self, node: int) -> dict[str, int]:
        """Counters of a NIC that are not 0, without its steps."""
        counters = self.control.agent_counters(self.first_nic + node)
        return {name: n for name, n in counters.items() if n and name != "steps"}

    def irq_counters(self, node: int, core: int = 0) -> dict[str, int]:
        """Counters of a handler that are not 0."""
        counters = self.control.agent_counters(node * self.cores + core)
        return {name: n for name, n in counters.items() if n}

    # -- what they share -------------------------------------------------------

    def at(self, node: int, kind: type[T], offset: int) -> T:
        """A structure in a node's segment."""
        return kind.from_address(self.nodes[node].segment.address + offset)

    def process(self, node: int, endpoint: int = 0) -> Process:
        start = self.layouts[node].vmmc_processes_offset
        return self.at(node, Process, start + endpoint * ctypes.sizeof(Process))

    def export_entry(self, node: int, endpoint: int = 0, index: int = 0) -> Export:
        start = self.process(node, endpoint).exports_offset
        return self.at(node, Export, start + index * ctypes.sizeof(Export))

    def import_entry(self, node: int, endpoint: int = 0, index: int = 0) -> Import:
        start = self.process(node, endpoint).imports_offset
        return self.at(node, Import, start + index * ctypes.sizeof(Import))

    def core(self, node: int, core: int = 0) -> Core:
        start = self.layouts[node].vmmc_cores_offset
        return self.at(node, Core, start + core * ctypes.sizeof(Core))

    def pages(self, node: int, endpoint: int = 0) -> Words:
        """The words of a process's pages; the last one is its mailbox's."""
        process = self.process(node, endpoint)
        start = self.nodes[node].segment.address + process.pages_offset
        words: Words = (ctypes.c_uint32 * process.pages_count).from_address(start)
        return words

    def depositing(self, node: int) -> int:
        return self._word(node, self.layouts[node].vmmc_offset).value

    def _word(self, node: int, offset: int) -> ctypes.c_uint32:
        return word32(self.nodes[node].segment, offset)

    def slot(self, node: int, endpoint: int = 0) -> WaitSlot:
        """The wait slot of a process."""
        return self.slot_of(self.rank_runner(node, endpoint))

    def slot_of(self, runner: int) -> WaitSlot:
        """The wait slot of a runner; 0 is that of all NICs and handlers."""
        place = runner_place(self.control, runner)
        return WaitSlot.from_address(self.control.segment.address + place)

    def memory(self, node: int, endpoint: int = 0) -> Bytes:
        """A process's part of the heap; slices of it are lists of bytes."""
        process = self.process(node, endpoint)
        heap = self.nodes[node].heap_segment
        assert heap is not None
        start = heap.address + process.heap_offset
        held: Bytes = (ctypes.c_uint8 * process.heap_bytes).from_address(start)
        return held

    # -- what a process does ----------------------------------------------------

    def open(self, node: int, endpoint: int = 0, core: int = 0) -> Process:
        """Open a process that the test plays; its slot does not notify (signal 0)."""
        process = self.process(node, endpoint)
        process.runner = self.rank_runner(node, endpoint)
        process.core = core
        process.heap_bytes = self.layouts[node].heap_bytes
        process.heap_offset = HEAP_START_BYTES + endpoint * process.heap_bytes
        slot = self.slot(node, endpoint)
        slot.pid, slot.signal = os.getpid(), 0
        process.state = OPEN
        return process

    def export(
        self,
        node: int,
        endpoint: int = 0,
        index: int = 0,
        *,
        offset: int = 0,
        length: int = 8192,
        generation: int = 1,
        interrupts: bool = True,
        allowed: int = ANY_NODE,
    ) -> Export:
        """Write an export entry as its owner would."""
        entry = self.export_entry(node, endpoint, index)
        entry.allowed_node, entry.offset, entry.length = allowed, offset, length
        entry.interrupts = interrupts
        entry.generation = generation
        return entry

    def watch(self, node: int, *pages: int, endpoint: int = 0, word: int = Page.BLOCK) -> None:
        """Go to sleep watching these pages (-1: the mailbox): slot armed, words set."""
        process, words = self.process(node, endpoint), self.pages(node, endpoint)
        self.slot(node, endpoint).armed = ARMED_BLOCK
        process.watched_count = len(pages)
        for place, page in enumerate(pages):
            process.watched[place] = page % process.pages_count
            words[page % process.pages_count] = word

    def close(self, node: int, endpoint: int = 0) -> None:
        """Set a process CLOSING, and tell the NIC."""
        self.process(node, endpoint).state = CLOSING
        self._word(node, self.layouts[node].vmmc_offset + CLOSING_OFFSET).value += 1

    def take_port(self, node: int, port: int, endpoint: int = 0) -> None:
        start = self.nodes[node].segment.address + self.layouts[node].vmmc_ports_offset
        ctypes.c_uint8.from_address(start + port).value = endpoint + 1

    def take_letters(self, node: int, endpoint: int = 0) -> list[Letter]:
        """Take the letters off a process's mailbox."""
        start = self.process(node, endpoint).mailbox_offset
        ring = self.at(node, Ring, start)
        taken = []
        while ring.tail != ring.head:
            place = ring.tail % ring.entries * ring.slot_bytes
            slot = self.at(node, Letter, start + ring.slots_offset + place)
            taken.append(Letter.from_buffer_copy(slot))
            ring.tail += 1
        return taken

    # -- frames, from node 1 to node 0 unless told otherwise -------------------

    def send(self, frame: bytes, source: int = 1, endpoint: int = 0) -> None:
        """Put a frame into the tx ring of an endpoint."""
        assert put_frame(self.nodes[source], "endpoint_tx", endpoint, frame, self.now_ns)

    def update(
        self, data: bytes, offset: int = 0, *, ask: bool = False, to: int = 0, **fields: Any
    ) -> None:
        """Send an update for export 0 of generation 1, unless `fields` says another."""
        fields = {"source": 1, "generation": 1, "flags": ask * FLAG_INTERRUPT, **fields}
        self.send(vmmc_frame(UPDATE, to, data=data, offset=offset, **fields), fields["source"])

    def letter(self, data: bytes = b"", *, tag: int = 7, to: int = 0, **fields: Any) -> None:
        """Send a library's letter; `kind` and `status` may be given."""
        word = fields.pop("status", 0) << 8 | fields.pop("kind", LETTER_LIBRARY)
        fields = {"source": 1, **fields}
        self.send(
            vmmc_frame(LETTER, to, data=data, offset=tag, generation=word, **fields),
            fields["source"],
        )

    def map_request(self, index: int = 0, *, tag: int = 7, to: int = 0, **fields: Any) -> None:
        fields = {"source": 1, **fields}
        self.send(vmmc_frame(MAP_REQUEST, to, index=index, offset=tag, **fields), fields["source"])

    # -- time --------------------------------------------------------------------

    @property
    def agents(self) -> list[Agent]:
        return [*self.nics, *self.handlers]

    def step(self, *agents: Agent) -> bool:
        """One step of each of these agents, or of all; True if anything happened."""
        return sum(agent.step_at(self.now_ns) for agent in agents or self.agents) > 0

    def next_due_ns(self) -> int | None:
        return min((a.due_ns for a in self.agents if a.due_ns is not None), default=None)
