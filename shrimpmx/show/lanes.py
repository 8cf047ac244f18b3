"""A trace as lanes for a picture: what each part of each node was doing when."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shrimpmx.cluster.engine.trace_text import MARK
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.cpu_use import CpuUse
from shrimpmx.show.depths import Depths, depths_of
from shrimpmx.show.flights import Flight
from shrimpmx.show.timeline import Timeline

# What a lane shows, in the order of a packet's way through a node.
WIRE, DMA, RING, INTERRUPTS, HANDLER, RANK, OTHER = LANE_KINDS = (
    *("wire", "DMA", "ring", "timer and interrupts", "handlers", "rank", "other"),
)
# What a span is.
STATES = (
    *("packet", "marked packet", "lost packet", "DMA", "timer"),
    *("interrupt taken", "poll", "computing", "spinning", "in the kernel", "asleep"),
    *("without its CPU", "waiting", "MPI call"),
)
# Spans at one time have rows of their own, up to so many (ours).
ROWS_MAX = 6
NO_RECORD = -1


class Span(NamedTuple):
    """A time with one state, from a record on or none; `until_ns`: when a timer would run out;
    `text`: what else there is to say.
    """

    start_ns: int
    end_ns: int
    state: str
    record: int = NO_RECORD
    row: int = 0
    until_ns: int = 0
    text: str = ""


@dataclass
class Lane:
    """One part of a node; `marks` are records by number."""

    kind: str
    node: int
    name: str
    spans: list[Span] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    depths: Depths = ()
    rows: int = 1


def lanes_of(timeline: Timeline, flights: Sequence[Flight]) -> list[Lane]:
    """The lanes of a trace, by node and along a packet's way; `flights` are its packets. Times are
    ns of the trace.
    """
    return _Lanes(timeline).all(flights)


class _Lanes:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._number = {id(record): number for number, record in enumerate(timeline.records)}
        self._lanes: dict[tuple[int, int, str], Lane] = {}
        self._line_free_ns: dict[tuple[int, int], int] = {}
        self._use = CpuUse(timeline.switches)
        self._by_agent: dict[int, list[TraceRecord]] = defaultdict(list)
        for record in timeline.records:
            self._by_agent[record.agent].append(record)

    def all(self, flights: Sequence[Flight]) -> list[Lane]:
        """All that have something to show."""
        for flight in flights:
            self._add_flight(flight)
        self._add_rings()
        for agent, records in self._by_agent.items():
            self._add_agent(agent, records)
        self._add_calls()
        found = [lane for _, lane in sorted(self._lanes.items())]
        for lane in found:
            if lane.kind in (WIRE, DMA, INTERRUPTS, HANDLER):
                lane.spans, lane.rows = in_rows(lane.spans)
            lane.marks.sort()
        return found

    def _lane(self, kind: str, node: int, name: str) -> Lane:
        key = node, LANE_KINDS.index(kind), name
        if key not in self._lanes:
            self._lanes[key] = Lane(kind, node, name)
        return self._lanes[key]

    def _add_flight(self, flight: Flight) -> None:
        node, sent, arrived = flight.destination, flight.sent, flight.arrived
        if sent is not None:
            state = "marked packet" if flight.word & MARK else "packet"
            end_ns = arrived.time_ns if arrived else sent.time_ns
            span = self._span(sent, end_ns, state if arrived else "lost packet")
            # A line has its packets one after another, however early they were handed to it.
            free_ns = self._line_free_ns.get((flight.source, node), 0)
            span = span._replace(start_ns=min(end_ns, max(span.start_ns, free_ns)))
            self._line_free_ns[flight.source, node] = max(free_ns, end_ns)
            self._lane(WIRE, node, f"wire to node{node}").spans.append(span)
        if arrived is not None and flight.in_memory is not None:
            span = self._span(arrived, flight.in_memory.time_ns, "DMA")
            self._lane(DMA, node, "NIC: DMA").spans.append(span)

    def _span(self, record: TraceRecord, end_ns: int, state: str, until_ns: int = 0) -> Span:
        number = self._number[id(record)]
        return Span(record.time_ns, end_ns, state, number, until_ns=until_ns)

    def _add_rings(self) -> None:
        depths = depths_of(self._timeline)
        several = {node for node, queue in depths if queue}
        for (node, queue), found in depths.items():
            name = f"NIC: ring {queue:2}" if node in several else "NIC: ring"
            self._lane(RING, node, name).depths = found

    def _add_calls(self) -> None:
        """The calls of MPI, below what a rank did, those within others in rows of their own."""
        for rank, (spans, rows) in calls_of(self._timeline).items():
            lane = self._lane(RANK, self._timeline.seats[rank].node, rank)
            lane.spans += [span._replace(row=lane.rows + span.row) for span in spans]
            lane.rows += rows

    # -- agents ----------------------------------------------------------------

    def _add_agent(self, agent: int, records: list[TraceRecord]) -> None:
        timeline = self._timeline
        name, node = timeline.name_of(agent), timeline.node_of(agent)
        if name in timeline.seats:
            spans = _rank_spans(timeline, name, records, self._number)
            self._add(RANK, node, name, spans, records)
        elif ".irq" in name:
            self._add(HANDLER, node, "handlers", self._polls(name, records), records)
        elif name.endswith(".nic"):
            interrupts = [each for each in records if each.kind.startswith("irq_")]
            spans = self._timers(records)
            self._add(INTERRUPTS, node, "NIC: timer, interrupts", spans, interrupts)
            drops = [each for each in records if each.kind == "drop"]
            self._add(WIRE, node, f"wire to node{node}", (), drops)
        else:
            self._add(OTHER, node, name, (), records)

    def _add(
        self, kind: str, node: int, name: str, spans: Iterable[Span], records: list[TraceRecord]
    ) -> None:
        """Spans, and as marks those records that no span shows."""
        found = list(spans)
        marks = [self._number[id(record)] for record in records if not _is_told(record)]
        if found or marks:
            lane = self._lane(kind, node, name)
            lane.spans += found
            lane.marks += marks

    def _polls(self, name: str, records: Iterable[TraceRecord]) -> Iterator[Span]:
        taken: TraceRecord | None = None
        begun: TraceRecord | None = None
        for record in records:
            if record.kind == "interrupt":
                if taken is not None:
                    yield self._without_poll(name, taken, record.time_ns)
                taken = record
            elif record.kind == "poll_begin":
                if taken is not None:
                    yield self._span(taken, record.time_ns, "interrupt taken")
                taken, begun = None, record
            elif record.kind == "poll_end" and begun is not None:
                yield self._span(begun, record.time_ns, "poll")
                begun = None
        if taken is not None:
            yield self._without_poll(name, taken, self._timeline.records[-1].time_ns)

    def _without_poll(self, name: str, taken: TraceRecord, end_ns: int) -> Span:
        """An interrupt for completed sends alone: to the end of its handler's turn on a CPU."""
        until_ns, cpu = taken.time_ns, self._use.cpu_of(name, end_ns)
        if cpu is not None:
            process = self._timeline.switches.process_of[name]
            turns = self._use.slices(cpu, taken.time_ns, end_ns)
            until_ns = next((end for _, end, who in turns if who == process), until_ns)
        return self._span(taken, until_ns, "interrupt taken")

    def _timers(self, records: Iterable[TraceRecord]) -> Iterator[Span]:
        running: dict[int, TraceRecord] = {}
        for record in records:
            if record.kind != "irq_timer":
                continue
            begun = running.pop(record.a, None)
            if begun is not None and record.time_ns > begun.time_ns:
                yield self._span(begun, record.time_ns, "timer", begun.time_ns + begun.b)
            if record.b:
                running[record.a] = record
        end_ns = self._timeline.records[-1].time_ns
        for begun in running.values():
            until_ns = begun.time_ns + begun.b
            yield self._span(begun, min(end_ns, until_ns), "timer", until_ns)


def _is_told(record: TraceRecord) -> bool:
    """Whether a span shows it, or another record at its time."""
    return record.kind.endswith(("_begin", "_end")) or record.kind in ("irq_timer", "irq_wished")


def _rank_spans(
    timeline: Timeline,
    name: str,
    records: list[TraceRecord],
    number: Mapping[int, int],
) -> Iterator[Span]:
    """What a rank was doing from its first record to its last: by its waits and sleeps, and where
    that is known by whether it had a CPU.
    """
    start_ns, end_ns = records[0].time_ns, records[-1].time_ns
    with_cpu = _with_cpu(timeline, name, start_ns, end_ns)
    changes: list[tuple[int, int, str, bool, int]] = [
        (time_ns, NO_RECORD, "cpu", has, NO_RECORD) for time_ns, has in with_cpu
    ]
    for record in records:
        what, _, edge = record.kind.partition("_")
        if what in ("wait", "sleep"):
            index = number[id(record)]
            changes.append((record.time_ns, index, what, edge == "begin", index))
    is_so = {"cpu": True, "wait": False, "sleep": False}
    since = {"cpu": NO_RECORD, "wait": NO_RECORD, "sleep": NO_RECORD}
    at_ns = start_ns
    state, record_number = "computing", NO_RECORD
    for time_ns, _, what, begins, index in sorted(changes):
        if time_ns > at_ns:
            yield Span(at_ns, time_ns, state, record_number)
            at_ns = time_ns
        is_so[what], since[what] = begins, index
        state = _rank_state(is_so)
        record_number = since["sleep" if is_so["sleep"] else "wait"]
    if end_ns > at_ns:
        yield Span(at_ns, end_ns, state, record_number)


def _rank_state(is_so: Mapping[str, bool]) -> str:
    if is_so["sleep"]:
        return "in the kernel" if is_so["cpu"] else "asleep"
    if not is_so["cpu"]:
        return "without its CPU"
    return "spinning" if is_so["wait"] else "computing"


def _with_cpu(
    timeline: Timeline, name: str, start_ns: int, end_ns: int
) -> Iterator[tuple[int, bool]]:
    """When a rank's process gets a CPU, and when it loses it; nothing where that is unknown, then
    its sleeps count as without one.
    """
    switches = timeline.switches
    process = switches.process_of.get(name)
    known = [begins[0][0] for begins in switches.begins.values() if begins]
    if process is None or not known:
        for record in timeline.records:
            if record.kind in ("sleep_begin", "sleep_end") and timeline.agent_name(record) == name:
                yield record.time_ns, record.kind == "sleep_end"
        return
    use = CpuUse(switches)
    yield start_ns, False
    for cpu in switches.begins:
        for begin_ns, until_ns, who in use.slices(cpu, start_ns, end_ns):
            if who == process:
                yield begin_ns, True
                yield until_ns, False
    if min(known) > start_ns:  # before, it was not recorded
        yield start_ns, True
        yield min(known), False


def calls_of(timeline: Timeline) -> dict[str, tuple[list[Span], int]]:
    """The calls of MPI between the first and the last record, by rank, as those of in_rows()."""
    found: dict[str, list[Span]] = defaultdict(list)
    for call in timeline.calls:
        first_ns, last_ns = timeline.records[0].time_ns, timeline.records[-1].time_ns
        if call.end_ns >= first_ns and call.begin_ns <= last_ns and call.rank in timeline.seats:
            begin_ns, end_ns = max(call.begin_ns, first_ns), min(call.end_ns, last_ns)
            found[call.rank].append(Span(begin_ns, end_ns, "MPI call", text=call.words))
    return {rank: in_rows(spans) for rank, spans in found.items()}


def in_rows(spans: Iterable[Span]) -> tuple[list[Span], int]:
    """Spans in order of time, those at the same time in several rows, and the number of rows. Where
    there are too many at a time one begins later, when its row is free.
    """
    found: list[Span] = []
    free: list[int] = []  # rows
    busy: list[tuple[int, int]] = []  # until when, row
    rows = 0
    for span in sorted(spans):
        while busy and busy[0][0] <= span.start_ns:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free and rows < ROWS_MAX:
            free.append(rows)
            rows += 1
        free_ns, row = (0, heapq.heappop(free)) if free else heapq.heappop(busy)
        begin_ns, end_ns = max(span.start_ns, free_ns), max(span.end_ns, free_ns)
        heapq.heappush(busy, (end_ns, row))
        found.append(span._replace(start_ns=begin_ns, end_ns=end_ns, row=row))
    return found, max(rows, 1)
