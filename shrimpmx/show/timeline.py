"""The timeline of one message, from the binary trace of all agents, as text.

A trace holds what each agent did. Here what belongs together is put together: a packet as its
source's NIC sent it, as it arrived and as it was in host memory; a poll from its begin to its
end. Times are us since the message was handed to the library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shrimpmx.cluster.engine.mpi_calls import MpiCall
from shrimpmx.cluster.engine.switches import Switches
from shrimpmx.cluster.engine.trace_text import cause, words
from shrimpmx.errors import InputError
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.flights import PACKET_WAY, SENT, Flight, flights_of
from shrimpmx.wire.tables import WireGeometry, wire_geometry

# Lines of packets in a row, of one kind and way, from which on the middle is folded.
FOLD_FROM = 4
# Records that say nothing beside the lines about packets, or that only the file holds.
SILENT = frozenset(
    {
        *PACKET_WAY,
        *("irq_wished", "irq_timer", "poll_begin"),
        *("wait_begin", "wait_end", "sleep_begin", "sleep_end"),
    }
)

_NODE = re.compile(r"node(\d+)\.")
_CORE = re.compile(r"\.irq(\d+)$")


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
    many times those of the emulated hosts are the times. `calls`: of MPI, of traced programs.
    """

    records: Sequence[TraceRecord]
    agents: Sequence[str]
    geometry: WireGeometry = field(default_factory=wire_geometry)
    processes: Sequence[str] = ()
    seats: Mapping[str, Seat] = field(default_factory=dict)
    overwritten: Mapping[int, int] = field(default_factory=dict)
    switches: Switches = field(default_factory=Switches)
    dilation: float = 1.0
    calls: Sequence[MpiCall] = ()
    _flights: list[Flight] | None = field(default=None, init=False, repr=False, compare=False)
    _nodes: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)

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
        if agent not in self._nodes:
            self._nodes[agent] = self._node_of(agent)
        return self._nodes[agent]

    def _node_of(self, agent: int) -> int:
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
        """Every packet, with what became of it."""
        if self._flights is None:
            self._flights = flights_of(self.records, self.node_of)
        return self._flights

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
        found += [
            self._packet_line(flight, flight.sent.time_ns)
            for flight in self.flights()
            if flight.sent is not None
        ]
        return sorted(found, key=lambda line: line.time_ns)

    def _packet_line(self, flight: Flight, sent_ns: int) -> Line:
        there = self._us(flight.in_memory.time_ns if flight.in_memory else None)
        text = f"{flight.words(self.geometry)}, to node{flight.destination}: " + (
            f"in memory at {there}" if there else "did not arrive"
        )
        group = (SENT, flight.word & 0xFF, flight.source, flight.destination)
        return Line(sent_ns, f"node{flight.source}.nic", text, group)

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
        raise InputError(
            f"the trace holds no message that {sender} sent, since it keeps its last records only: "
            "send fewer messages"
        )
    of_message = [record for record in ordered if record.time_ns >= starts[-1]]
    geometry, switches = geometry or wire_geometry(), switches or Switches()
    return Timeline(of_message, agents, geometry, processes, seats or {}, switches=switches)
