"""Metrics of steering and binding: what they are made of, and the reasons why there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rich.console import Console
from support.results import a_document, a_point

from shrimpmx.results.expectation import evaluate
from shrimpmx.results.expectation_kinds import AS_EXPECTED, NOT_HERE, Ratio
from shrimpmx.results.metrics import METRICS, Outcome
from shrimpmx.show.plot.reading import metric_label
from shrimpmx.show.report import print_report


def outcome(**given: Any) -> Outcome:
    """Two nodes of two cores each, without any packet."""
    fields: dict[str, Any] = {"samples": np.empty(0), "counters": {}, "ranks": ("rank0", "rank1")}
    return Outcome(**{**fields, **given})


def figure(name: str, of: Outcome) -> float:
    found = METRICS[name].compute(of)
    assert not isinstance(found, str), found
    (value,) = found
    return float(value)


LEDGER = outcome(
    counters={
        "node0.nic": {"rx_packets": 60, "rx_queue_changes": 3, "flow_moves": 2},
        "node1.nic": {"rx_packets": 40, "rx_queue_changes": 2, "flow_moves": 1},
        "node0.irq0": {
            "recv_packets": 45, "recv_pull_reply": 6, "handover_endpoint": 20, "handover_pull": 3,
            "handover_event": 21, "recv_at_process": 3, "handover_event_back": 2,
        },
        "node0.irq1": {"recv_packets": 15, "handover_event": 14},
        "node1.irq0": {"recv_packets": 20, "recv_at_process": 2},
        "node1.irq1": {"recv_packets": 20, "recv_pull_reply": 4, "handover_pull": 2},
        "rank0": {"moves": 5},
        "rank1": {"moves": 4},
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("handovers_per_packet", (20 + 3 + 21 + 2 + 14 + 2) / 100),
        ("endpoint_handovers", 0.2),
        ("pull_handovers", 0.5),
        ("events_handed_over", 87.5),
        ("queue_changes", 0.05),
        ("flow_moves", 3),
        ("moves", 9),
        # Of 60 packets of one node 45, of 40 of the other 20.
        ("busiest_core", 65),
    ],
)
def test_counts_are_summed_over_all_agents(name: str, value: float) -> None:
    assert METRICS[name].kind == "count"
    assert figure(name, LEDGER) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("handovers_per_packet", "no handler found a packet"),
        ("endpoint_handovers", "no handler found a packet"),
        ("pull_handovers", "no pull reply was received"),
        ("events_handed_over", "no handler wrote an event"),
        ("queue_changes", "no packet arrived"),
        ("busiest_core", "no handler found a packet"),
    ],
)
def test_what_a_run_cannot_give_is_a_reason(name: str, reason: str) -> None:
    assert METRICS[name].compute(outcome()) == reason


@pytest.mark.parametrize("name", ["half_round_trip", "bandwidth", "mean_half_round_trip"])
def test_without_times_of_messages_the_reason_names_what_a_program_has_to_give(name: str) -> None:
    reason = METRICS[name].compute(outcome())
    assert isinstance(reason, str)
    assert {"half_round_trip_ns,", "rank.samples)"} <= set(reason.split())


def test_nobody_moved_is_a_count() -> None:
    assert figure("moves", outcome()) == 0
    assert figure("flow_moves", outcome()) == 0


def test_a_move_is_neither_good_nor_bad_and_a_time_per_packet_has_its_unit() -> None:
    names = ("moves", "flow_moves", "queue_changes", "handler_cpu_per_packet")
    document = a_document("x", [a_point({"wait": "spin"}, dict.fromkeys(names, 5.0))], "wait")
    console = Console(width=100)
    with console.capture() as capture:
        print_report(document, console)
    titles = [line for line in capture.get().splitlines() if line[:1].isalpha()]
    assert titles[2:] == [
        "Processes moved, moves",
        "Endpoints sent to another queue, moves",
        "Changes of queue per packet — lower is better",
        "CPU time of the handlers per packet, ns — lower is better",
    ]
    assert metric_label("moves") == "Processes moved, moves"


def test_throughput_is_a_message_over_half_the_round_trip() -> None:
    of = outcome(samples=np.array([4e6, 8e6]), message_bytes=4 << 20)
    found = METRICS["bandwidth"].compute(of)
    assert not isinstance(found, str)
    assert found.tolist() == [1000, 500]
    # Of an emulated platform it is as much higher as its times are shorter.
    assert METRICS["bandwidth"].scale(8.0) == 8.0
    empty = outcome(samples=np.array([4e6]))
    assert METRICS["bandwidth"].compute(empty) == "messages of 0 B carry nothing"


def test_interrupts_in_turn_have_a_mean_where_a_median_is_one_of_two_kinds() -> None:
    in_turn = METRICS["mean_half_round_trip"].compute(outcome(samples=np.array([17e3, 33e3] * 20)))
    assert not isinstance(in_turn, str)
    # Of 40 messages 32 are whole turns.
    assert in_turn.tolist() == [25, 25]
    few = METRICS["mean_half_round_trip"].compute(outcome(samples=np.array([17e3] * 15)))
    assert few == "fewer than 16 messages"


@pytest.mark.parametrize(
    ("cpus", "verdict"), [(None, AS_EXPECTED), (5, AS_EXPECTED), (4, NOT_HERE)]
)
def test_an_expectation_may_need_cpus(cpus: int | None, verdict: str) -> None:
    repeats = [{"state": "near", "count": 1}] * 3
    points = [
        {
            "params": {"irq_binding": core},
            "metrics": {"half_round_trip": {"samples": [us] * 3, "repeats": repeats}},
            "states": ["near"] * 3,
            "limits": [],
        }
        for core, us in (("0", 10.0), ("1", 20.0))
    ]
    expected = Ratio(
        text="later",
        metric="half_round_trip",
        of={"irq_binding": "1"},
        to={"irq_binding": "0"},
        at_least=1.5,
        cpus=5,
    )
    found = evaluate(expected, points, cpus=cpus)
    assert found.verdict == verdict
    if verdict == NOT_HERE:
        assert found.detail == "needs 5 CPUs, and this process may use 4"
