"""Sections of a report: made from the document alone, in words that agree with its counts."""

from __future__ import annotations

from typing import Any

import pytest

from shrimpmx.measure.sections import SECTIONS

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
        "(6 marked, 1 timeout); 6 of 6 marks raised one; the timer ran out once on packets that "
        "nothing had reported; 1 wished found that the running handler had taken the packets",
    ]


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        (
            {"rx_packets": 161, "irq_raised": 90, "irq_raised_packet": 90},
            "each of 161 packets asks for one",
        ),
        (
            {"rx_marked": 6, "irq_raised": 5, "irq_raised_marked": 1, "irq_raised_deferred": 4},
            "5 of 6 marks raised one, 4 once the packets behind had come",
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
            "json": "j",
            "full": "t",
        }
        for name in ("open-mx", "timeout")
    ]
    text = SECTIONS["timeline"].text({**DOCUMENT, "timelines": timelines})
    assert "open-mx; open-mx heads\ntext of open-mx\n" in text
    assert "text of timeout" not in text
    assert "timeout: t, and for ui.perfetto.dev j" in text
    assert SECTIONS["timeline"].text(DOCUMENT) == "no message was traced"
