"""The trace: the last records of each agent, whole, in order, also of a dead one."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest

from shrimpmx.errors import InputError, SegmentError
from shrimpmx.native.segment import SEGMENT_TRACE, RunIdentity, Segment
from shrimpmx.native.trace import Trace, TraceRecord, kind_names, kind_values

ENTRIES = 8
HEADER_BYTES, RING_BYTES = 128, 64  # of trace.h


@pytest.fixture
def trace() -> Iterator[Trace]:
    segment = Segment.anonymous(Trace.size_bytes(2, ENTRIES), SEGMENT_TRACE)
    yield Trace.create(segment, 2, ENTRIES)
    segment.close()


def test_nothing_is_there_at_first(trace: Trace) -> None:
    assert trace.records() == []


def test_records_of_all_agents_come_by_time(trace: Trace) -> None:
    trace.record(0, 100, "irq_raised", 3, 1)
    trace.record(1, 50, "poll_end", 3, 64)
    trace.record(0, 150, "note")
    assert trace.records() == [
        TraceRecord(50, 1, "poll_end", 3, 64),
        TraceRecord(100, 0, "irq_raised", 3, 1),
        TraceRecord(150, 0, "note", 0, 0),
    ]


@pytest.mark.parametrize("count", [ENTRIES - 1, ENTRIES, ENTRIES + 1, 3 * ENTRIES + 2])
def test_a_full_ring_keeps_the_last(trace: Trace, count: int) -> None:
    for number in range(count):
        trace.record(0, number, "note", number)
    kept = [record.a for record in trace.records_of(0)]
    assert kept == list(range(max(count - ENTRIES + 1, 0), count))
    assert trace.written(0) == count
    assert trace.records_of(1) == []


def test_a_record_that_is_being_overwritten_is_not_shown(trace: Trace) -> None:
    for number in range(ENTRIES):
        trace.record(0, number, "note", number)
    # The writer has begun the next record, in the place of the oldest, and got no further.
    first_slot = HEADER_BYTES + RING_BYTES
    struct.pack_into("<q", trace.segment.view(), first_slot, 777)
    assert [record.time_ns for record in trace.records_of(0)] == list(range(1, ENTRIES))


def test_large_values_pass_whole(trace: Trace) -> None:
    trace.record(1, -1, "drop", 2**64 - 1, 2**63)
    assert trace.records() == [TraceRecord(-1, 1, "drop", 2**64 - 1, 2**63)]


def test_every_kind_has_a_name_of_its_own() -> None:
    names = kind_names()
    assert len(set(names)) == len(names)
    assert all(all(kind_values(name)) for name in names)
    assert kind_values("irq_raised") == ("vector", "cause")


def test_the_trace_of_a_killed_writer_can_be_read() -> None:
    identity = RunIdentity.of_this_process()
    segment = Segment.create(identity, "trace", Trace.size_bytes(1, ENTRIES), SEGMENT_TRACE)
    Trace.create(segment, 1, ENTRIES)
    child = os.fork()
    if child == 0:
        other = Trace.attach(Segment.attach(segment.name, SEGMENT_TRACE))
        other.record(0, 42, "note", 2)
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert Trace.attach(segment).records() == [TraceRecord(42, 0, "note", 2, 0)]
    segment.close()
    segment.unlink()


def test_wrong_sizes_and_agents_are_refused(trace: Trace) -> None:
    with pytest.raises(InputError, match="there is no agent 2 in this trace; it has 2"):
        trace.record(2, 0, "note")
    with pytest.raises(InputError, match="power of two, not 6"):
        Trace.create(trace.segment, 1, 6)
    with pytest.raises(SegmentError, match="a trace of 99 agents needs"):
        Trace.create(trace.segment, 99, ENTRIES)
