"""A trace for https://ui.perfetto.dev: what every agent did, as TrackEvents in protobuf.

A track per node, and in it one per agent: the NIC, and handlers and ranks by core. Polls and waits
are slices, every other record is an instant, whose category is the kind of record. A flow joins
what happened to one packet, or the sending of a message with its receive. A counter per rx queue
says how many frames lie in host memory that no poll has taken. Below a rank are its calls of MPI.
A track per CPU has a slice for each time that a process had it.
"""

from __future__ import annotations

import io
import itertools
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from shrimpmx.cluster.engine.trace_text import words
from shrimpmx.native.files import write_whole
from shrimpmx.native.perf import IDLE
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.cpu_use import CpuUse
from shrimpmx.show.depths import depths_of
from shrimpmx.show.flights import PACKET_WAY
from shrimpmx.show.kept_trace import ADVICE
from shrimpmx.show.lanes import ROWS_MAX, calls_of
from shrimpmx.show.timeline import Timeline

SUFFIX = ".pftrace"
# The packets of one writer may refer to each other; all of a trace are of one.
SEQUENCE = 1
# What happens to a message.
SENT, RECEIVED = "isend", "received"
SEQNUM_MASK = 0x3FFF
# No NIC has more rx queues: an interrupt tells them as bits of a word.
QUEUES_MAX = 64
# Numbers of tracks: agents from 1 on, then nodes, then their counters, CPUs, what holds these, and
# calls.
NODE_TRACKS, DEPTH_TRACKS, CPU_TRACKS, CPUS_TRACK = 1 << 32, 2 << 32, 3 << 32, 4 << 32
CALL_TRACKS = 5 << 32


def write_perfetto(timeline: Timeline, path: Path) -> None:
    """Write the timeline where ui.perfetto.dev can open it. MachineError as write_whole's."""
    write_whole(path, perfetto(timeline), ADVICE)


def perfetto(timeline: Timeline) -> bytes:
    """The timeline as a Perfetto trace; its times begin at the first record."""
    made = _Trace(timeline)
    made.name_tracks()
    for record in timeline.records:
        made.add(record)
    made.add_depths()
    made.add_cpus()
    made.add_calls()
    return made.file.getvalue()


class _Trace:
    """A trace that is being made, one packet after another."""

    def __init__(self, timeline: Timeline) -> None:
        self.file = io.BytesIO()
        self._builder = StreamingTraceProtoBuilder(self.file)
        self._timeline = timeline
        self._start_ns = timeline.records[0].time_ns if timeline.records else 0
        self._flows = _Flows(timeline)
        self._names: dict[tuple[str, int, int], str] = {}
        self._open: set[tuple[int, str]] = set()

    def _packet(self) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = SEQUENCE
        return packet

    # -- tracks --------------------------------------------------------------

    def name_tracks(self) -> None:
        """A track per node that has agents in the trace, and below it one per agent."""
        timeline = self._timeline
        numbers = sorted({record.agent for record in timeline.records})
        for node in sorted({timeline.node_of(number) for number in numbers}):
            track = self._track(NODE_TRACKS + node, f"node{node}")
            track.child_ordering = TrackDescriptor.LEXICOGRAPHIC
            self._builder.write_packet(self._last)
        for number in numbers:
            track = self._track(1 + number, self._agent_words(number))
            track.parent_uuid = NODE_TRACKS + timeline.node_of(number)
            self._builder.write_packet(self._last)

    def _track(self, uuid: int, name: str) -> Any:
        self._last = self._packet()
        track = self._last.track_descriptor
        track.uuid, track.name = uuid, name
        return track

    def _agent_words(self, number: int) -> str:
        name, core = self._timeline.name_of(number), self._timeline.core_of(number)
        lost = self._timeline.overwritten.get(number, 0)
        told = name if core is None else f"core {core}: {name}"
        return f"{told} (the first {lost} records are overwritten)" if lost else told

    # -- events --------------------------------------------------------------

    def add(self, record: TraceRecord) -> None:
        """What one record tells."""
        stem, _, end = record.kind.partition("_")
        key = record.agent, stem
        if end == "begin":
            self._open.add(key)
            self._event(record, TrackEvent.TYPE_SLICE_BEGIN, stem)
        elif end == "end":
            self._event(record, TrackEvent.TYPE_INSTANT, self._words(record))
            if key in self._open:
                self._open.discard(key)
                self._event(record, TrackEvent.TYPE_SLICE_END, "")
        else:
            self._event(record, TrackEvent.TYPE_INSTANT, self._words(record))

    def _event(self, record: TraceRecord, kind: int, name: str) -> None:
        packet = self._packet()
        packet.timestamp = record.time_ns - self._start_ns
        event = packet.track_event
        event.type = kind
        event.track_uuid = 1 + record.agent
        if name:
            event.name = name
            event.categories.append(record.kind)
            flow = self._flows.of(record)
            if flow:
                event.flow_ids.append(flow)
        self._builder.write_packet(packet)

    def _words(self, record: TraceRecord) -> str:
        key = record.kind, record.a, record.b
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = words(record, self._timeline.processes)
        return name

    # -- counters ------------------------------------------------------------

    def add_depths(self) -> None:
        """The counters of frames in host memory."""
        found = depths_of(self._timeline)
        several = {node for node, queue in found if queue}
        for (node, queue), depths in found.items():
            uuid = DEPTH_TRACKS + (node * QUEUES_MAX + queue)
            place = f", queue {queue}" if node in several else ""
            track = self._track(uuid, f"node{node}: frames in host memory{place}")
            track.counter.unit_name = "frames"
            track.parent_uuid = NODE_TRACKS + node
            self._builder.write_packet(self._last)
            for time_ns, depth in depths:
                packet = self._packet()
                packet.timestamp = time_ns - self._start_ns
                packet.track_event.type = TrackEvent.TYPE_COUNTER
                packet.track_event.track_uuid = uuid
                packet.track_event.counter_value = depth
                self._builder.write_packet(packet)

    # -- CPUs ------------------------------------------------------------------

    def add_cpus(self) -> None:
        """Which process had which CPU, from the first record to the last."""
        records, switches = self._timeline.records, self._timeline.switches
        used = [cpu for cpu, begins in switches.begins.items() if begins]
        if not records or not used:
            return
        use, idle = CpuUse(switches), switches.names.get(IDLE)
        self._track(CPUS_TRACK, "CPUs").child_ordering = TrackDescriptor.EXPLICIT
        self._builder.write_packet(self._last)
        for cpu in used:
            track = self._track(CPU_TRACKS + cpu, f"CPU {cpu}")
            track.parent_uuid, track.sibling_order_rank = CPUS_TRACK, cpu
            self._builder.write_packet(self._last)
            for begin_ns, end_ns, name in use.slices(cpu, self._start_ns, records[-1].time_ns):
                if name != idle:
                    self._slice(CPU_TRACKS + cpu, (begin_ns, end_ns), "cpu", name)

    def _slice(
        self, uuid: int, times_ns: tuple[int, int], category: str, name: str, place: str = ""
    ) -> None:
        for time_ns, kind in zip(
            times_ns, (TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END), strict=True
        ):
            packet = self._packet()
            packet.timestamp = time_ns - self._start_ns
            event = packet.track_event
            event.type, event.track_uuid = kind, uuid
            if kind == TrackEvent.TYPE_SLICE_BEGIN:
                event.name = name
                event.categories.append(category)
                if place:
                    note = event.debug_annotations.add()
                    note.name, note.string_value = "line", place
            self._builder.write_packet(packet)

    # -- MPI -------------------------------------------------------------------

    def add_calls(self) -> None:
        """The calls of MPI of each rank, those within others on a track of their own."""
        timeline, calls = self._timeline, calls_of(self._timeline)
        for number in sorted({record.agent for record in timeline.records}):
            spans, rows = calls.get(timeline.name_of(number), ([], 0))
            first = CALL_TRACKS + number * ROWS_MAX
            for row in range(rows):
                name = f"MPI calls within others, {row}" if row else "MPI calls"
                self._track(first + row, name).parent_uuid = 1 + number
                self._builder.write_packet(self._last)
            for span in spans:
                name, _, place = span.text.partition(", ")
                self._slice(first + span.row, (span.start_ns, span.end_ns), "mpi", name, place)


class _Flows:
    """Which flow a record belongs to. Of equal messages the first is the first again."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._numbers: Iterator[int] = itertools.count(1)
        self._packets: dict[int, int] = {}  # by the record's identity
        for flight in timeline.flights():
            if flight.first is flight.handled:  # there is nothing to join
                continue
            number = next(self._numbers)
            for record in (flight.sent, flight.arrived, flight.in_memory, flight.handled):
                self._packets[id(record)] = number
        self._messages: dict[tuple[Any, ...], deque[int]] = defaultdict(deque)

    def of(self, record: TraceRecord) -> int:
        """Its number; 0: none."""
        if record.kind in PACKET_WAY:
            return self._packets.get(id(record), 0)
        seat = self._timeline.seats.get(self._timeline.name_of(record.agent))
        if seat is None or record.kind not in (SENT, RECEIVED):
            return 0
        own, number = (seat.node, seat.endpoint), record.a & SEQNUM_MASK
        partner = record.a >> 32, record.a >> 16 & 0xFFFF
        if record.kind == SENT:
            self._messages[own, partner, number].append(next(self._numbers))
            return self._messages[own, partner, number][-1]
        waiting = self._messages[partner, own, number]
        return waiting.popleft() if waiting else 0
