"""A trace as lanes: what each part of each node was doing when."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from shrimpmx.cluster.engine.switches import Switches
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.lanes import ROWS_MAX, Lane, Span, in_rows, lanes_of
from shrimpmx.show.timeline import Seat, Timeline

AGENTS = ["rank0", "node0.nic", "node1.nic", "node1.irq0", "rank1", "node1.dma"]
RANK0, NIC0, NIC1, IRQ1, RANK1, DMA1 = range(6)
SEATS = {"rank0": Seat(0, 0, 0), "rank1": Seat(1, 2, 3)}
TINY, MARK = 37, 0x80


def packet(number: int, mark: int = 0) -> int:
    return TINY | mark | number << 16 | 1 << 48


def lanes(records: list[TraceRecord], switches: Switches | None = None) -> dict[str, Lane]:
    ordered = sorted(records, key=lambda record: record.time_ns)
    timeline = Timeline(ordered, AGENTS, seats=SEATS, switches=switches or Switches())
    return {lane.name: lane for lane in lanes_of(timeline, timeline.flights())}


def spans(lane: Lane) -> list[tuple[int, int, str]]:
    return [span[:3] for span in lane.spans]


def test_a_line_has_its_packets_one_after_another() -> None:
    records = [TraceRecord(10, NIC0, "tx_frame", packet(each, MARK * each), 60) for each in (0, 1)]
    records += [
        TraceRecord(20 + 5 * each, NIC1, "rx_frame", packet(each, MARK * each), 60)
        for each in (0, 1)
    ]
    records.append(TraceRecord(40, NIC0, "tx_frame", packet(2), 60))
    wire = lanes(records)["wire to node1"]
    told = [(10, 20, "packet"), (20, 25, "marked packet"), (40, 40, "lost packet")]
    assert (spans(wire), wire.rows) == (told, 1)


def test_frames_wait_in_the_ring_until_a_poll() -> None:
    records = [
        *(TraceRecord(each, NIC1, "rx_frame", packet(each), 60) for each in (1, 2)),
        *(TraceRecord(each + 4, NIC1, "dma_complete", packet(each), 60) for each in (1, 2)),
        TraceRecord(9, NIC1, "irq_raised", 0, 1),
        TraceRecord(10, IRQ1, "interrupt", 1, 0),
        TraceRecord(12, IRQ1, "poll_begin", 0, 64),
        TraceRecord(15, IRQ1, "event", packet(1), 3),
        TraceRecord(20, IRQ1, "poll_end", 0, 2),
    ]
    found = lanes(records)
    assert found["NIC: ring"].depths == [(5, 1), (6, 2), (20, 0)]
    assert spans(found["NIC: DMA"]) == [(1, 5, "DMA"), (2, 6, "DMA")]
    assert found["NIC: DMA"].rows == 2
    assert spans(found["handlers"]) == [(10, 12, "interrupt taken"), (12, 20, "poll")]
    assert [lane.kind for lane in found.values()] == [
        *("DMA", "ring", "timer and interrupts", "handlers"),
    ]
    assert [len(found[name].marks) for name in ("NIC: timer, interrupts", "handlers")] == [1, 2]


def test_an_interrupt_for_sends_lasts_for_its_handlers_turn() -> None:
    records = [
        *(TraceRecord(at, IRQ1, "interrupt", 1 << 62, 0) for at in (10, 30, 50)),
        TraceRecord(55, IRQ1, "poll_begin", 0, 64),
        *(TraceRecord(60, IRQ1, "poll_end", 0, 0), TraceRecord(70, IRQ1, "interrupt", 1 << 62, 0)),
        TraceRecord(90, RANK1, "note", 0, 0),
    ]
    begins = {4: [(0, 1), (12, 2), (17, 1), (30, 2), (34, 1), (50, 2), (60, 1), (70, 2), (73, 1)]}
    switches = Switches(begins, {1: "rank1", 2: "irq0"}, {"node1.irq0": "irq0"})
    polled = [(50, 55, "interrupt taken"), (55, 60, "poll")]
    assert spans(lanes(records, switches)["handlers"]) == [
        *((10, 17, "interrupt taken"), (30, 34, "interrupt taken"), *polled),
        (70, 73, "interrupt taken"),
    ]
    # Where the kernel tells no switches it is a moment.
    assert spans(lanes(records)["handlers"])[:2] == [
        *((10, 10, "interrupt taken"), (30, 30, "interrupt taken")),
    ]


def test_a_timer_counts_down_until_it_ends_or_is_stopped() -> None:
    records = [
        TraceRecord(0, NIC1, "irq_timer", 0, 75),
        TraceRecord(75, NIC1, "irq_timer", 0, 0),
        TraceRecord(100, NIC1, "irq_timer", 0, 75),
        TraceRecord(110, NIC1, "irq_timer", 1, 75),
        TraceRecord(120, NIC1, "irq_timer", 0, 0),
        TraceRecord(130, NIC1, "irq_timer", 1, 75),
        TraceRecord(140, RANK1, "note", 0, 0),
    ]
    lane = lanes(records)["NIC: timer, interrupts"]
    told = [(span.start_ns, span.end_ns, span.until_ns, span.row) for span in lane.spans]
    assert told == [(0, 75, 75, 0), (100, 120, 175, 0), (110, 130, 185, 1), (130, 140, 205, 0)]


def test_a_rank_computes_spins_sleeps_and_is_in_the_kernel() -> None:
    records = [
        TraceRecord(0, RANK1, "isend", 0, 0),
        TraceRecord(10, RANK1, "wait_begin", 0, 0),
        TraceRecord(20, RANK1, "sleep_begin", 0, 0),
        TraceRecord(60, RANK1, "sleep_end", 0, 0),
        TraceRecord(65, RANK1, "wait_end", 2, 1),
        TraceRecord(80, RANK1, "received", 0, 0),
    ]
    names = {1: "rank1", 2: "idle"}
    begins = {4: [(0, 1), (25, 2), (50, 1), (70, 2), (75, 1)]}
    switches = Switches(begins, names, {"rank1": "rank1"})
    assert spans(lanes(records, switches)["rank1"]) == [
        *((0, 10, "computing"), (10, 20, "spinning"), (20, 25, "in the kernel")),
        *((25, 50, "asleep"), (50, 60, "in the kernel"), (60, 65, "spinning")),
        *((65, 70, "computing"), (70, 75, "without its CPU"), (75, 80, "computing")),
    ]
    # Where the kernel tells no switches a sleep is one as a whole.
    assert spans(lanes(records)["rank1"]) == [
        *((0, 10, "computing"), (10, 20, "spinning"), (20, 60, "asleep")),
        *((60, 65, "spinning"), (65, 80, "computing")),
    ]


def test_other_agents_have_lanes_of_their_own() -> None:
    found = lanes([TraceRecord(5, DMA1, "note", 1, 2)])
    assert [(lane.kind, lane.node, lane.name) for lane in found.values()] == [
        ("other", 1, "node1.dma")
    ]
    assert lanes([]) == {}


@pytest.mark.parametrize("seed", range(20))
def test_spans_of_a_row_never_overlap(seed: int) -> None:
    random = Random(seed)
    given = [
        Span(start, start + random.randrange(60), "DMA", number)
        for number, start in enumerate(random.choices(range(300), k=80))
    ]
    found, rows = in_rows(given)
    assert len(found) == len(given)
    assert rows <= ROWS_MAX
    assert {span.record for span in found} == set(range(80))
    for row in range(rows):
        own = [span for span in found if span.row == row]
        assert all(one.end_ns <= other.start_ns for one, other in pairwise(own))
