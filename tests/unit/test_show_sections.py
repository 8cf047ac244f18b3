"""Sections of a report: made from the document alone, in words that agree with its counts."""

from __future__ import annotations

from typing import Any

import pytest

from shrimpmx.show.sections import SECTIONS

DOCUMENT: dict[str, Any] = {
    "layout": {"axes": ["coalescing"]},
    "points": [
        {
            "params": {"coalescing": "open-mx"},
            "per_message": {
                "node0.nic": {"rx_marked": 6, "irq_raised": 6.5, "irq_raised_marked": 5.5},
                "node0.irq0": {"recv_pull_request": 5, "recv_notify": 1},
                "node1.nic": {
                    "rx_marked": 6,
                    "irq_raised": 7,
                    "irq_raised_marked": 6,
                    "irq_raised_timeout": 1,
                    "irq_absorbed": 1,
                },
                "node1.irq0": {"recv_rndv": 1, "recv_pull_reply": 100},
                "node1.irq1": {"recv_pull_reply": 60, "recv_liback": 1},
                "rank0": {"recv_events": 3},
            },
        }
    ],
}


def test_interrupts_are_told_by_host_and_cause() -> None:
    lines = SECTIONS["interrupts"].text(DOCUMENT).splitlines()
    assert lines == [
        "coalescing open-mx",
        "  node0: 5 pull requests, 1 notify arrived, 6 marked: 6.50 interrupts (5.50 marked); "
        "5.50 of 6 marks raised one",
        "  node1: 1 rendezvous, 160 pull replies, 1 ack arrived, 6 marked: 7 interrupts "
        "(6 marked, 1 timeout); 6 of 6 marks raised one; the timer expired once with unreported "
        "packets; 1 absorbed, since the running handler took the packets",
    ]


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        (
            {"rx_packets": 161, "irq_raised": 90, "irq_raised_packet": 90},
            "each of 161 packets requests one",
        ),
        (
            {"rx_marked": 6, "irq_raised": 5, "irq_raised_marked": 1, "irq_raised_deferred": 4},
            "5 of 6 marks raised one, 4 after the packets behind them",
        ),
        ({}, "nothing arrived, 0 marked: 0 interrupts"),
    ],
)
def test_the_reasons_follow_from_the_counts(moved: dict[str, float], said: str) -> None:
    point = {"params": {}, "per_message": {"node0.nic": moved}}
    assert said in SECTIONS["interrupts"].text({"points": [point]})


def test_a_run_without_counts_by_message_says_so() -> None:
    document = {"points": [{"params": {}, "per_message": {}}]}
    assert "no run counted" in SECTIONS["interrupts"].text(document)


def test_the_first_timeline_is_printed_and_all_are_named() -> None:
    timelines = [
        {
            "params": {"coalescing": name},
            "heading": f"{name} heads",
            "text": f"text of {name}",
            "perfetto": "p",
            "full": "t",
        }
        for name in ("open-mx", "timeout")
    ]
    text = SECTIONS["timeline"].text({**DOCUMENT, "timelines": timelines})
    assert "open-mx; open-mx heads\ntext of open-mx\n" in text
    assert "text of timeout" not in text
    assert "timeout: t, and for ui.perfetto.dev p" in text
    assert SECTIONS["timeline"].text(DOCUMENT) == "no message was traced"


def timed(reschedule_us: int, interrupt_us: int, **wall: float) -> list[dict[str, Any]]:
    return [
        {
            "params": {
                "reschedule_cost_ns": 1000 * reschedule_us,
                "interrupt_time_ns": 1000 * interrupt_us,
                "wait": wait.replace("_", "-"),
            },
            "metrics": {"wall_time": {"median": us}},
        }
        for wait, us in wall.items()
    ]


def test_the_tipping_point_lies_between_the_costs_that_were_run() -> None:
    points = [
        *timed(0, 0, sched=80, block=100, spin_block=90),
        *timed(10, 0, sched=90, block=110, spin_block=120),
        *timed(0, 100, sched=80, block=100, spin_block=110),
        *timed(10, 100, sched=90, block=130, spin_block=110),
        *timed(30, 100, sched=190, block=140, spin_block=150),
    ]
    # Block: 10 above at 0 and 10 below at 10 us; 10 below, 20 above, 10 below; sched 40 below at
    # 10 us and 50 above at 30.
    assert SECTIONS["tipping-point"].text({"points": points}).splitlines() == [
        "interrupt 0 µs: block takes longer than spin-block up to 5 µs per reschedule; "
        "sched takes longer than block at no cost up to 10 µs",
        "interrupt 100 µs: block and spin-block change places at 3.33 µs and 23.3 µs per "
        "reschedule; sched takes longer than block from 18.9 µs per reschedule",
    ]


def test_without_two_costs_or_a_figure_nothing_tips() -> None:
    absent = {"unavailable": "no round trips"}
    missing = [
        {**point, "metrics": {"wall_time": absent}} for point in timed(10, 0, sched=1, block=2)
    ]
    points = [*timed(0, 0, sched=1, block=2), *missing]
    assert SECTIONS["tipping-point"].text({"points": points}) == (
        "fewer than two costs of a reschedule were run"
    )


PAID = {"node0, ranks": {"paid_send_cost_ns": 1, "paid_send_cost_ns_total": 900}}


def test_what_was_paid_is_told_by_point_and_its_absence_too() -> None:
    section = SECTIONS["paid"].text
    assert section(DOCUMENT) == "no cost was charged: set platform=NAME, or a cost"
    point = {**DOCUMENT["points"][0], "paid": PAID}
    text = section({**DOCUMENT, "points": [DOCUMENT["points"][0], point]})
    assert text.count("open-mx") == 1
    assert "node0, ranks: 0.900 us" in text
