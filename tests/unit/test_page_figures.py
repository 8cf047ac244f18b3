"""Figures of a page: of any number of points, in a file that can be sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.page import Page
from support.results import a_document, a_metric, a_point, write_result

from shrimpmx.cli import main
from shrimpmx.page.part import core_of
from shrimpmx.results.metrics import METRICS

pytestmark = pytest.mark.charts


@pytest.mark.nightly("a large page")
def test_five_hundred_points_fit_a_page(tmp_path: Path) -> None:
    """A mark for each of 500 points and two metrics, in a file that can be sent by mail."""
    metrics = {"half_round_trip": a_metric(5), "interrupts_per_message": a_metric(2)}
    metrics["half_round_trip"]["samples"] = [x * 0.01 for x in range(400, 700)]
    metrics["half_round_trip"]["repeats"] = [{"state": "near", "count": 100}] * 3
    points = [
        a_point({"size_bytes": 128 * size, "wait": wait, "rx_usecs": us, "seed": seed}, metrics)
        for size in range(5)
        for wait in ("spin", "block", "sched", "spin-block")
        for us in (10, 20, 50, 75, 100)
        for seed in range(5)
    ]
    document = a_document("mine/x", points, rows="size_bytes", columns="wait")
    result = write_result(tmp_path / "r", document)
    assert main(["report", str(result)]) == 0
    page = Page.read(result / "report.html")
    assert page.unbalanced == []
    marks = [each for each in page.attributes["path"] if each.get("role") == "graphics-symbol"]
    assert len(marks) >= 1000
    assert len(page.source.encode()) < 3_000_000


def test_single_figures_share_a_table() -> None:
    both = {"run_time": a_metric(5), "run_interrupts": a_metric(3)}
    document = a_document("x", [a_point({"program": "ring.py"}, both)])
    document["layout"] = {"rows": "", "columns": "", "axes": []}
    [table] = core_of(document, "a").tables
    assert [words[0] for words in table.words()] == ["5", "3"]
    assert [heading.partition(",")[0] for heading, _ in table.rows] == [
        METRICS[name].title for name in both
    ]
