"""Where the time of a run went: the parts make up the whole, of any run, and are the right ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from support.simulated_seeds import draw_simulated

from shrimpmx.cluster.engine.switches import Switches
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.experiment.recording import seats_of
from shrimpmx.native.perf import IDLE
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.breakdown.breakdown import Breakdown, breakdown_of
from shrimpmx.show.breakdown.spans import PARTS, Span, percentages, totals
from shrimpmx.show.breakdown.words import parts_table, path_lines
from shrimpmx.show.flights import LOST
from shrimpmx.show.timeline import Seat, Timeline
from shrimpmx.simulation.engine import Simulated

AGENTS = ["rank0", "node0.nic", "node1.nic", "node1.irq0", "rank1", "node0.irq0", "rank2"]
RANK0, NIC0, NIC1, IRQ1, RANK1, IRQ0, RANK2 = range(7)
SEATS = {"rank0": Seat(0, 0, 0), "rank1": Seat(1, 0, 3), "rank2": Seat(1, 1, 4)}
THERE = 3 << 48
WORD = 39 | 1 << 48


def assert_whole(spans: Sequence[Span], begin_ns: int, end_ns: int) -> None:
    """They follow each other without gaps from begin to end."""
    ends = [begin_ns, *(span.end_ns for span in spans)]
    assert [span.begin_ns for span in spans] == ends[:-1]
    assert ends[-1] == end_ns
    assert all(span.length_ns > 0 and span.part in PARTS for span in spans)


def assert_all_whole(found: Breakdown) -> None:
    for spans in (*found.ranks.values(), found.path):
        assert_whole(spans, found.begin_ns, found.end_ns)
        assert sum(round(10 * share) for share in percentages(totals(spans)).values()) == 1000
    for each in found.messages:
        assert_whole(each.spans, each.message.sent.time_ns, each.message.received.time_ns)
    document = found.document()
    for parts in (*document["ranks"].values(), document["critical_path"]["parts"]):
        assert sum(parts.values()) == document["took_ns"]
    for each in document["messages"]:
        assert sum(each["parts"].values()) == each["took_ns"]


def traced(spec: ClusterSpec, entries: int = 1 << 15) -> Timeline:
    result = Simulated().run(replace(spec, trace_entries=entries))
    lost = result.overwritten
    seats = seats_of(spec)
    return Timeline(
        result.records, result.agents, seats=seats, overwritten=lost, switches=result.switches
    )


@pytest.mark.nightly("each seed", but=9)
@pytest.mark.parametrize("seed", range(1, 31))
def test_the_parts_of_any_simulated_run_make_up_its_time(seed: int) -> None:
    spec = draw_simulated(seed)
    found = breakdown_of(traced(spec))
    if found is None:
        assert spec.kind.vmmc or spec.mode == "generator"
        return
    assert_all_whole(found)
    assert found.messages or spec.mode == "generator"


@pytest.mark.parametrize("seed", range(1, 7))
def test_of_a_trace_that_lacks_its_begin_the_rest_is_divided(seed: int) -> None:
    timeline = traced(draw_simulated(seed), 64)
    if (found := breakdown_of(timeline)) is not None:
        assert_all_whole(found)
        if any(timeline.overwritten.values()):
            assert all("start" not in totals(spans) for spans in found.ranks.values())


def a_message() -> list[TraceRecord]:
    """A message of rank 0 for rank 1, which waits for it from 5 on, and computes from 150 on."""
    return [
        TraceRecord(0, RANK0, "note", 0, 0),
        TraceRecord(5, RANK1, "wait_begin", 3, 0),
        TraceRecord(10, RANK0, "isend", 1 << 32 | 3 << 16, 100),
        TraceRecord(14, NIC0, "tx_frame", WORD, THERE | 100),
        TraceRecord(20, NIC1, "rx_frame", WORD, THERE | 100),
        TraceRecord(27, NIC1, "dma_complete", WORD, THERE | 100),
        TraceRecord(60, NIC1, "irq_raised", 0, 0),
        TraceRecord(68, IRQ1, "interrupt", 1, 0),
        TraceRecord(70, IRQ1, "poll_begin", 0, 64),
        TraceRecord(79, IRQ1, "event", WORD, THERE | 3),
        TraceRecord(83, IRQ1, "poll_end", 0, 1),
        TraceRecord(100, RANK1, "wait_end", 2, 1),
        TraceRecord(111, RANK1, "received", 0, 100),
        TraceRecord(150, RANK1, "note", 0, 0),
    ]


# What becomes of a message in the stages that a_message() has.
WAY = {
    "copy": 4 + 11,
    "wire": 6,
    "DMA": 7,
    "coalescing": 33,
    "interrupt": 10,
    "handler": 9 + 4,
    "wake-up": 17,
}


def test_each_stage_of_a_message_is_its_part() -> None:
    found = breakdown_of(Timeline(a_message(), AGENTS, seats=SEATS))
    assert found is not None
    [message] = found.messages
    assert totals(message.spans) == WAY
    assert totals(found.ranks["rank1"]) == {"start": 5, "late partner": 5, **WAY, "end": 39}
    assert totals(found.ranks["rank0"]) == {"start": 10, "end": 140}
    assert totals(found.path) == {"start": 10, **WAY, "end": 39}
    assert "rank2" not in found.ranks


def moved(records: list[TraceRecord], kind: str, time_ns: int) -> list[TraceRecord]:
    new = [each._replace(time_ns=time_ns) if each.kind == kind else each for each in records]
    return sorted(new, key=lambda record: record.time_ns)


def test_a_packet_that_a_poll_finds_was_held_back_until_then() -> None:
    records = [each for each in a_message() if each.kind not in ("interrupt", "irq_raised")]
    found = breakdown_of(Timeline(records, AGENTS, seats=SEATS))
    assert found is not None
    expected = {part: ns for part, ns in WAY.items() if part != "interrupt"}
    assert totals(found.messages[0].spans) == {**expected, "coalescing": 43}


def test_an_interrupt_taken_at_once_is_no_coalescing() -> None:
    # The simulated engine's handler pays for its interrupt between taking it and its poll.
    records = moved(moved(a_message(), "irq_raised", 27), "interrupt", 27)
    found = breakdown_of(Timeline(records, AGENTS, seats=SEATS))
    assert found is not None
    expected = {part: ns for part, ns in WAY.items() if part != "coalescing"}
    assert totals(found.messages[0].spans) == {**expected, "interrupt": 43}


def test_a_packet_for_which_the_handler_is_on_its_way_waits_for_the_interrupt() -> None:
    records = moved(moved(a_message(), "irq_raised", 15), "interrupt", 15)
    found = breakdown_of(Timeline(records, AGENTS, seats=SEATS))
    assert found is not None
    expected = {part: ns for part, ns in WAY.items() if part != "coalescing"}
    assert totals(found.messages[0].spans) == {**expected, "interrupt": 43}


def test_a_receiver_that_computes_is_late_for_its_message() -> None:
    # It begins to wait when the message has been there for 11, and finds it at once.
    records = moved(a_message(), "wait_begin", 90)
    found = breakdown_of(Timeline(records, AGENTS, seats=SEATS))
    assert found is not None
    parts = totals(found.messages[0].spans)
    assert parts["late partner"] == 111 - 79
    assert "wake-up" not in parts


def test_a_message_that_was_lost_waits_until_it_is_sent_again() -> None:
    again = [each._replace(time_ns=each.time_ns + 1000) for each in a_message()[3:]]
    resend = TraceRecord(1011, RANK0, "resend", 1 << 32 | 3 << 16, 100)
    lost = TraceRecord(14, NIC0, "drop", LOST, 0)
    records = [*a_message()[:4], lost, resend, *again]
    found = breakdown_of(Timeline(records, AGENTS, seats=SEATS))
    assert found is not None
    assert totals(found.messages[0].spans) == {**WAY, "copy": 3 + 11, "resend": 1001}


def test_another_process_on_the_cpu_of_a_rank_has_its_own_part() -> None:
    switches = Switches(
        begins={1: [(0, 8), (85, 50), (95, 8), (103, 50), (105, 8)]},
        names={IDLE: "idle", 8: "rank1", 50: "another program (pid 50, cc)"},
        process_of={"rank1": "rank1", "node1.irq0": "node1.irq0"},
    )
    found = breakdown_of(Timeline(a_message(), AGENTS, seats=SEATS, switches=switches))
    assert found is not None
    assert totals(found.messages[0].spans)["preempted"] == 10
    assert totals(found.ranks["rank1"])["preempted"] == 12


def test_a_sender_of_the_same_node_ends_a_wait() -> None:
    records = [
        TraceRecord(0, RANK1, "note", 0, 0),
        TraceRecord(5, RANK1, "wait_begin", 3, 0),
        TraceRecord(30, RANK2, "isend", 1 << 32 | 3 << 16, 100),
        TraceRecord(34, RANK2, "note", 0, 0),
        TraceRecord(40, RANK1, "wait_end", 2, 1),
        TraceRecord(42, RANK1, "received", 1 << 32 | 4 << 16, 100),
    ]
    found = breakdown_of(Timeline(records, AGENTS, seats=SEATS))
    assert found is not None
    expected = {"copy": 4 + 2, "wake-up": 6}
    assert totals(found.messages[0].spans) == expected
    assert totals(found.path) == {"start": 30, **expected}
    assert totals(found.ranks["rank1"]) == {"start": 5, "late partner": 25, **expected}


def test_percentages_add_up_however_they_are_rounded() -> None:
    draw = Random(1)
    for _ in range(2000):
        parts = {
            part: draw.choice((1, 2, 3, 997, 10**12, draw.randrange(1, 10**9)))
            for part in draw.sample(list(PARTS), draw.randrange(1, len(PARTS)))
        }
        shares = percentages(parts)
        assert sum(round(10 * share) for share in shares.values()) == 1000
        for part, share in shares.items():
            assert abs(share - 100 * parts[part] / sum(parts.values())) <= 0.1
    assert percentages({}) == {}


def test_the_table_has_the_parts_that_there_are_and_the_path_its_longest_steps() -> None:
    found = breakdown_of(Timeline(a_message(), AGENTS, seats=SEATS))
    assert found is not None
    table = parts_table(found, slowest=1)
    assert table.headings == ("us", "start", *WAY, "late partner", "end")
    names = [name for name, _ in table.rows]
    assert names == ["rank0", "rank1", "critical path", "rank0 to rank1, 100 B"]
    assert [line.split()[1:3] for line in path_lines(found)] == [
        ["0.010", "rank0:"],
        ["0.090", "rank0"],
        ["0.050", "rank1:"],
    ]
