"""A trace in few bytes, for the timeline of a page: columns of numbers, and each sentence once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shrimpmx.cluster.engine.trace_text import words
from shrimpmx.native.trace import TraceRecord, kind_names
from shrimpmx.show.flights import Flight
from shrimpmx.show.lanes import NO_RECORD, STATES, Lane, lanes_of
from shrimpmx.show.slow_messages import Message, Stages, messages_of
from shrimpmx.show.timeline import Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Records of one timeline: those around the slowest message (ours).
RECORDS_MAX = 150_000

Columns = dict[str, "NDArray[Any]"]


def packed(timeline: Timeline) -> bytes:
    """The trace, or its records around the slowest message, compressed."""
    # No time: the same trace gives the same page.
    return gzip.compress(columns_of(_bounded(timeline)), 6, mtime=0)


def columns_of(timeline: Timeline, why: Callable[[TraceRecord], str] | None = None) -> bytes:
    """The records, lanes, packets and messages of a trace: the length of a heading in 4 bytes,
    little-endian, 4 more, the heading in JSON, then its columns, each of whole 8 bytes. Times are
    those of the emulated hosts, ns since the first record. With `why` each record has a sentence
    more, or "".
    """
    import numpy as np

    number = {id(record): index for index, record in enumerate(timeline.records)}
    stages = Stages(timeline)
    lanes = lanes_of(timeline, stages.flights)
    messages = sorted(messages_of(timeline), key=lambda message: message.sent.time_ns)
    texts: dict[str, int] = {}
    stage_names: dict[str, int] = {}
    columns: Columns = {}
    emulated = [_emulated(record, timeline.dilation) for record in timeline.records]
    columns |= _record_columns(timeline, emulated, texts)
    if why is not None:
        sentences = [texts.setdefault(why(each), len(texts)) for each in emulated]
        columns["recordWhy"] = np.array(sentences, "<u4")
    columns |= _lane_columns(timeline, lanes, texts)
    columns |= _message_columns(timeline, messages, stages, number, stage_names)
    heading = {
        "agents": list(timeline.agents),
        "lanes": [
            {"kind": lane.kind, "node": lane.node, "name": lane.name, "rows": lane.rows}
            for lane in lanes
        ],
        "kinds": kind_names(),
        "states": STATES,
        "stages": list(stage_names),
        "texts": list(texts),
        "slowest": max(range(len(messages)), key=lambda at: messages[at].took_ns, default=-1),
        "columns": {name: [each.dtype.str[1:], each.size] for name, each in columns.items()},
    }
    head = json.dumps(heading, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    parts = [np.array([len(head)], "<u4").tobytes(), b"    ", head]
    for column in columns.values():
        content = column.tobytes()
        parts += [content, b"\0" * (-len(content) % 8)]
    return b"".join(parts)


def _bounded(timeline: Timeline) -> Timeline:
    """The trace, or its records around the slowest message."""
    count = len(timeline.records)
    if count <= RECORDS_MAX:
        return timeline
    slowest = max(messages_of(timeline), key=lambda each: each.took_ns, default=None)
    begin, end = 0, 0
    if slowest:
        begin, end = (timeline.records.index(each) for each in (slowest.sent, slowest.received))
    beside = max(0, RECORDS_MAX - (end - begin) - 1) // 2
    first = max(0, min(begin - beside, count - RECORDS_MAX))
    kept = timeline.records[first : first + RECORDS_MAX]
    return replace(timeline, records=kept)


def _times(timeline: Timeline, times_ns: Iterable[int]) -> NDArray[Any]:
    import numpy as np

    start_ns = timeline.records[0].time_ns if timeline.records else 0
    return ((np.array(list(times_ns), "<i8") - start_ns) / timeline.dilation).round(3)


def _record_columns(
    timeline: Timeline, emulated: Sequence[TraceRecord], texts: dict[str, int]
) -> Columns:
    import numpy as np

    records = timeline.records
    kinds = {kind: number for number, kind in enumerate(kind_names())}
    known: dict[tuple[str, int, int], int] = {}
    chosen = []
    for record in emulated:
        key = record.kind, record.a, record.b
        if key not in known:
            known[key] = texts.setdefault(words(record, timeline.processes), len(texts))
        chosen.append(known[key])
    return {
        "recordTime": _times(timeline, (record.time_ns for record in records)),
        "recordAgent": np.array([record.agent for record in records], "<u2"),
        "recordKind": np.array([kinds[record.kind] for record in records], "<u1"),
        "recordText": np.array(chosen, "<u4"),
    }


def _emulated(record: TraceRecord, dilation: float) -> TraceRecord:
    """With the times in its values, too, as the emulated hosts have them."""
    if record.kind != "irq_timer":
        return record
    return record._replace(b=round(record.b / dilation))


def _lane_columns(timeline: Timeline, lanes: Sequence[Lane], texts: dict[str, int]) -> Columns:
    import numpy as np

    spans = [
        (number, span)
        for number, lane in enumerate(lanes)
        for span in sorted(lane.spans, key=lambda span: (span.row, span.start_ns))
    ]
    marks = [(number, mark) for number, lane in enumerate(lanes) for mark in lane.marks]
    depths = [(number, *depth) for number, lane in enumerate(lanes) for depth in lane.depths]
    state = {name: index for index, name in enumerate(STATES)}
    return {
        "spanLane": np.array([number for number, _ in spans], "<u2"),
        "spanStart": _times(timeline, (span.start_ns for _, span in spans)),
        "spanEnd": _times(timeline, (span.end_ns for _, span in spans)),
        "spanUntil": _times(timeline, (span.until_ns or span.end_ns for _, span in spans)),
        "spanState": np.array([state[span.state] for _, span in spans], "<u1"),
        "spanRow": np.array([span.row for _, span in spans], "<u1"),
        "spanRecord": np.array([span.record for _, span in spans], "<i4"),
        "spanText": np.array([texts.setdefault(span.text, len(texts)) for _, span in spans], "<u4"),
        "markLane": np.array([number for number, _ in marks], "<u2"),
        "markRecord": np.array([mark for _, mark in marks], "<u4"),
        "depthLane": np.array([number for number, _, _ in depths], "<u2"),
        "depthTime": _times(timeline, (time_ns for _, time_ns, _ in depths)),
        "depth": np.array([depth for _, _, depth in depths], "<u4"),
    }


def _message_columns(
    timeline: Timeline,
    messages: Sequence[Message],
    stages: Stages,
    number: dict[int, int],
    names: dict[str, int],
) -> Columns:
    import numpy as np

    told = [
        (index, names.setdefault(name, len(names)), number[id(record)])
        for index, message in enumerate(messages)
        for name, record in stages.of(message)
    ]
    own = {
        id(flight): index
        for index, message in enumerate(messages)
        for flight in stages.packets_of(message)
    }

    def numbers(way: str, flights: Sequence[Flight]) -> NDArray[Any]:
        records = (getattr(flight, way) for flight in flights)
        return np.array([number[id(each)] if each else NO_RECORD for each in records], "<i4")

    flights = stages.flights
    return {
        "messageSent": np.array([number[id(each.sent)] for each in messages], "<u4"),
        "messageReceived": np.array([number[id(each.received)] for each in messages], "<u4"),
        "messageBytes": np.array([each.received.b for each in messages], "<f8"),
        "stageMessage": np.array([message for message, _, _ in told], "<u4"),
        "stageName": np.array([name for _, name, _ in told], "<u1"),
        "stageRecord": np.array([record for _, _, record in told], "<u4"),
        "packetSent": numbers("sent", flights),
        "packetArrived": numbers("arrived", flights),
        "packetInMemory": numbers("in_memory", flights),
        "packetHandled": numbers("handled", flights),
        "packetMessage": np.array([own.get(id(each), -1) for each in flights], "<i4"),
    }
