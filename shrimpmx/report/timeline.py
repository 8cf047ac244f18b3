"""The timeline of one message, from the binary trace of all agents, as text.

A trace holds what each agent did. Here what belongs together is put together: a packet as its
source's NIC sent it, as it arrived and as it was in host memory; a poll from its begin to its
end. Times are us since the message was handed to the library.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shrimpmx.cluster.engine.switches import Switches
from shrimpmx.cluster.engine.trace_text import MARK, SHORT_NAMES, cause, words
from shrimpmx.errors import InputError
from shrimpmx.native.trace import TraceRecord
from shrimpmx.wire.names import PACKET_NAMES
from shrimpmx.wire.tables import PULL_REPLY_OVERHEAD_BYTES, WireGeometry, wire_geometry

# Lines of packets in a row, of one kind and way, from which on the middle is folded.
FOLD_FROM = 4
# What a NIC says of a packet on its way, and the order of it.
SENT, ARRIVED, IN_MEMORY = "tx_frame", "rx_frame", "dma_complete"
# Records that say nothing beside the lines about packets, or that only the file holds.
SILENT = frozenset(
    {SENT, ARRIVED, IN_MEMORY, "event", "irq_wished", "poll_begin", "wait_begin", "wait_end"}
)

_NODE = re.compile(r"node(\d+)\.")
_CORE = re.compile(r"\.irq(\d+)$")


@dataclass(frozen=True)
class Flight:
    """A packet on its way; a time is None if the trace has no record of it (ns)."""

    word: int
    size_bytes: int
    sent_ns: int
    arrived_ns: int | None = None
    in_memory_ns: int | None = None

    @property
    def source(self) -> int:
        """The node that sent it."""
        return self.word >> 32 & 0xFFFF

    @property
    def destination(self) -> int:
        """The node that it is for."""
        return self.word >> 48

    @property
    def name(self) -> str:
        """What kind of packet it is."""
        name = PACKET_NAMES.get(self.word & 0x7F, f"type {self.word & 0x7F}")
        return SHORT_NAMES.get(name, name)

    def words(self, geometry: WireGeometry) -> str:
        """What it is, which part of the message it carries, and whether it is marked."""
        fragment, seqnum = self.word >> 8 & 0xFF, self.word >> 16 & 0xFFFF
        text = self.name
        if text == "pull request":
            block = -(-seqnum // geometry.pull_block_frames)
            text += f", block {block} (from frame {seqnum} on)"
        elif text == "pull reply":
            first = fragment * geometry.pull_frame_bytes
            last = first + self.size_bytes - PULL_REPLY_OVERHEAD_BYTES - 1
            block = fragment // geometry.pull_block_frames
            text += f" {fragment} (block {block}, bytes {first}..{last})"
        elif text == "medium":
            text += f" {seqnum}.{fragment}"
        elif text == "ack":
            text += f", awaiting {seqnum}"
        elif text not in ("connect", "nack_mcp"):
            text += f" {seqnum}"
        return text + (", marked" if self.word & MARK else "")


@dataclass(frozen=True)
class Line:
    """One line: `group` is what lines that can be folded together have in common."""

    time_ns: int
    agent: str
    text: str
    group: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Seat:
    """Where a rank is: its node, the core that it runs on, and its endpoint there."""

    node: int
    core: int
    endpoint: int


@dataclass
class Timeline:
    """Records by time, of one message or of a run; `agents` and `processes` are names by number.

    `seats` are those of ranks, by name. `overwritten`: how many records of an agent, by its number,
    newer ones have overwritten. `switches`: which process had which CPU meanwhile. `dilation`: so
    many times those of the emulated hosts are the times.
    """

    records: Sequence[TraceRecord]
    agents: Sequence[str]
    geometry: WireGeometry = field(default_factory=wire_geometry)
    processes: Sequence[str] = ()
    seats: Mapping[str, Seat] = field(default_factory=dict)
    overwritten: Mapping[int, int] = field(default_factory=dict)
    switches: Switches = field(default_factory=Switches)
    dilation: float = 1.0

    @property
    def start_ns(self) -> int:
        """When the message was handed to the library."""
        return self.records[0].time_ns

    def agent_name(self, record: TraceRecord) -> str:
        """The name of the agent that recorded it."""
        return self.name_of(record.agent)

    def name_of(self, agent: int) -> str:
        """The name of an agent by its number."""
        return self.agents[agent] if agent < len(self.agents) else f"agent{agent}"

    def node_of(self, agent: int) -> int:
        """The node of an agent; 0 if neither its name nor a seat tells it."""
        name = self.name_of(agent)
        seat = self.seats.get(name)
        found = _NODE.match(name)
        return seat.node if seat else int(found[1]) if found else 0

    def core_of(self, agent: int) -> int | None:
        """The emulated core of a handler or a rank."""
        name = self.name_of(agent)
        seat = self.seats.get(name)
        found = _CORE.search(name)
        return seat.core if seat else int(found[1]) if found else None

    def flights(self) -> list[Flight]:
        """Every packet that was sent, with its arrival. Equal packets stay in their order."""
        flights: list[Flight] = []
        on_wire: dict[int, deque[int]] = defaultdict(deque)
        in_dma: dict[int, deque[int]] = defaultdict(deque)
        for record in self.records:
            if record.kind == SENT:
                on_wire[record.a].append(len(flights))
                flights.append(Flight(record.a, record.b, record.time_ns))
            elif record.kind == ARRIVED and on_wire[record.a]:
                index = on_wire[record.a].popleft()
                flights[index] = replace(flights[index], arrived_ns=record.time_ns)
                in_dma[record.a].append(index)
            elif record.kind == IN_MEMORY and in_dma[record.a]:
                index = in_dma[record.a].popleft()
                flights[index] = replace(flights[index], in_memory_ns=record.time_ns)
        return flights

    # -- text ------------------------------------------------------------

    def lines(self) -> list[Line]:
        """One line per packet, and per thing that an agent did with them."""
        found = []
        for record in self.records:
            if record.kind not in SILENT:
                group = (record.kind, record.agent, record.b)
                agent, words = self.agent_name(record), self._words(record)
                found.append(Line(record.time_ns, agent, words, group))
        # Behind what made the NIC send them, which has the same time on simulated hosts.
        found += [self._packet_line(flight) for flight in self.flights()]
        return sorted(found, key=lambda line: line.time_ns)

    def _packet_line(self, flight: Flight) -> Line:
        there = self._us(flight.in_memory_ns)
        text = f"{flight.words(self.geometry)}, to node{flight.destination}: " + (
            f"in memory at {there}" if there else "did not arrive"
        )
        group = (SENT, flight.word & 0xFF, flight.source, flight.destination)
        return Line(flight.sent_ns, f"node{flight.source}.nic", text, group)

    def _us(self, time_ns: int | None) -> str:
        return "" if time_ns is None else f"{(time_ns - self.start_ns) / 1000:.1f}"

    def _words(self, record: TraceRecord) -> str:
        if record.kind == "irq_raised":
            return f"INTERRUPT, cause {cause(record.b)}"
        return words(record, self.processes)

    def text(self, full: bool = False, most: int | None = None) -> str:
        """The timeline as text, us since the send; runs of like lines folded unless `full`.

        `most` bounds the number of lines.
        """
        lines = self.lines()
        shown = lines if full else folded(lines)
        told = [f"{self._us(line.time_ns):>9}  {line.agent:<11}  {line.text}" for line in shown]
        if most is not None and len(told) > most:
            left = len(told) - most
            told = [*told[:most], f"{'':>9}  {'...':<11}  {left} more lines"]
        return "\n".join(told)


def heading(dilation: float) -> str:
    """What the columns of a timeline are, and whose times; `dilation` is that of the run."""
    columns, whose = "us since the send, agent, event", dilation_words(dilation)
    return f"{columns}; {whose}" if whose else columns


def dilation_words(dilation: float) -> str:
    """Whose the times of a trace are; "" if they are those of the emulated hosts."""
    return "" if dilation == 1.0 else f"times are {dilation:g} times those of the emulated hosts"


def folded(lines: Sequence[Line]) -> list[Line]:
    """The lines with the middle of each run of like lines in one: "... 29 more"."""
    shown: list[Line] = []
    start = 0
    for index in range(1, len(lines) + 1):
        if index < len(lines) and lines[index].group == lines[start].group and lines[start].group:
            continue
        run = list(lines[start:index])
        if len(run) >= FOLD_FROM:
            middle = Line(run[1].time_ns, run[0].agent, f"... {len(run) - 2} more like it")
            run = [run[0], middle, run[-1]]
        shown += run
        start = index
    return shown


def message_timeline(
    records: Sequence[TraceRecord],
    agents: Sequence[str],
    geometry: WireGeometry | None = None,
    sender: str = "rank0",
    processes: Sequence[str] = (),
    seats: Mapping[str, Seat] | None = None,
    switches: Switches | None = None,
) -> Timeline:
    """The timeline of the last message that `sender` sent, to the end of the trace.

    InputError if the trace does not hold the beginning of one.
    """
    number = agents.index(sender) if sender in agents else -1
    ordered = sorted(records, key=lambda record: record.time_ns)
    starts = [
        record.time_ns for record in ordered if record.agent == number and record.kind == "isend"
    ]
    if not starts:
        raise InputError(f"the trace holds no message that {sender} sent; trace fewer messages")
    of_message = [record for record in ordered if record.time_ns >= starts[-1]]
    geometry, switches = geometry or wire_geometry(), switches or Switches()
    return Timeline(of_message, agents, geometry, processes, seats or {}, switches=switches)
