"""Mis-ordered messages on real processes, in small: exact counts of marks and of order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import resends

from shrimpmx.cli import main

pytestmark = pytest.mark.nightly("the paper's degrees")

MESSAGES, WARMUP, FRAGMENTS = 3, 1, 23


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The points of one short run, without the times of a platform."""
    path = tmp_path_factory.mktemp("misordering") / "r"
    arguments = ["run", "coalescing/table3_misordering", "--output", str(path)]
    short = (f"iterations={MESSAGES}", f"warmup={WARMUP}", "repeats=1", "platform=none")
    for setting in (*short, *resends.SETTINGS):
        arguments += ["--set", setting]
    assert main(arguments) == 0
    document: dict[str, Any] = json.loads((path / "run.json").read_text())
    found: list[dict[str, Any]] = document["points"]
    return found


def test_the_sweep_has_the_paper_s_degrees_both_ways(points: list[dict[str, Any]]) -> None:
    places = [(point["params"]["mark_early"], point["params"]["overtake"]) for point in points]
    assert sorted(set(places)) == [(0, 0), (0, 1), (0, 3), (1, 0), (2, 0), (3, 0), (4, 0)]
    assert len(places) == 14


def test_every_message_arrives_once_with_one_mark(points: list[dict[str, Any]]) -> None:
    for point in points:
        moved = point["per_message"]["node1.nic"]
        assert (moved["rx_packets"], moved["rx_marked"]) == (FRAGMENTS, 1)
        assert len(point["metrics"]["transfer"]["samples"]) == MESSAGES


def test_the_link_reorders_as_told(points: list[dict[str, Any]]) -> None:
    for point in points:
        sent = point["per_message"]["node0.nic"]
        # A sender that is kept off its CPU for long is not overtaken: the link lets go.
        assert sent.get("link_reordered", 0) <= point["params"]["overtake"]
    degrees = [point["params"]["overtake"] for point in points]
    reordered = [point["per_message"]["node0.nic"].get("link_reordered", 0) for point in points]
    assert reordered.count(0) < degrees.count(0) + 2


def test_only_stream_puts_an_interrupt_off(points: list[dict[str, Any]]) -> None:
    for point in points:
        success = point["metrics"]["deferral_success"]
        if point["params"]["mark_early"] == point["params"]["overtake"] == 0:
            assert "no packet comes behind a mark" in success["unavailable"]
        elif point["params"]["coalescing"] == "open-mx":
            assert success["samples"] == [0.0]
        else:
            assert 0 <= success["samples"][0] <= 100
