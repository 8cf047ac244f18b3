"""Figures in cells of tables: the interval as it is, marks, and a legend of what occurs."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console
from support.results import a_document, a_metric, a_point

from shrimpmx.show.cells import LEGEND, ONE_SAMPLE, cell_words, legend, tail_title, tail_words
from shrimpmx.show.report import print_report


def printed(document: dict[str, Any]) -> str:
    """What the report of a document prints on a wide terminal."""
    console = Console(width=100)
    with console.capture() as capture:
        print_report(document, console)
    return capture.get()


def metric(median: float, low: float, high: float) -> dict[str, Any]:
    return {**a_metric(median), "median": median, "ci95": [low, high]}


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((20, 18, 22), "20.00 ±2.00"),
        ((20, 20, 20), "20.00"),
        ((42.21, 38.5, 621.8), "42.21 [38.50, 621.8]"),
        ((1.175, 1.044, 1.188), "1.18 [1.04, 1.19]"),
        ((100, 99.1, 100.4), "100.0 ±0.7"),  # half a per cent aside
        ((1, 0, 1.2), "1.00 [0, 1.20]"),
        ((0.5, 0.1, 1.2), "0.500 [0.100, 1.20]"),
        ((0, -1, 1), "0 ±1"),
    ],
)
def test_an_interval_is_shown_as_it_lies(figures: tuple[float, float, float], words: str) -> None:
    assert cell_words(metric(*figures)) == words


def test_a_short_line_has_the_interval_below_the_figure() -> None:
    points = [
        a_point({"size_bytes": 0, "way": way}, {"wall_time": metric(42.21, 38.5, 621.8)})
        for way in ("a", "b", "c")
    ]
    document = a_document("x", points, "size_bytes", "way")
    for width, beside in ((120, 3), (62, 0)):
        console = Console(width=width)
        with console.capture() as capture:
            print_report(document, console)
        assert capture.get().count("[38.50, 621.8]") == 3
        [row] = [line for line in capture.get().splitlines() if "0 B" in line]
        assert row.count("[38.50, 621.8]") == beside


def test_a_legend_explains_the_signs_that_occur() -> None:
    assert legend(["20.00", "any"]) == ""
    assert legend(["20.00 ±2.00"]) == "± half of the 95 % interval"
    told = legend(["42.21 [38.50, 621.8]*", "far"])
    assert [part in told for part in ("±", "[low, high]", "* measured", "near, far:", "—")] == [
        *(False, True, True, True, False)
    ]


def test_the_only_figure_of_a_run_has_a_sign_and_its_legend() -> None:
    def shown(runs: int) -> str:
        several = {"samples": [5.0] * runs, "repeats": [{"state": "near", "count": 1}] * runs}
        count = {**a_metric(5.0), **several, "ci95": [5.0, 5.0]}
        points = [a_point({"way": "a"}, {"busiest_core": count})]
        return printed(a_document("x", points, "way"))

    assert f"5.00{ONE_SAMPLE}" in shown(1)
    assert LEGEND[ONE_SAMPLE] in shown(1)
    assert ONE_SAMPLE not in shown(2)


def test_settings_that_all_points_share_stand_above_the_tables() -> None:
    points = [
        a_point({"workload": "pingpong", "way": way, "iterations": 24}, {"wall_time": 1.0})
        for way in ("a", "b")
    ]
    text = printed(a_document("x", points, "way", layout={"rows": "way", "axes": ["way"]}))
    head, _, tables = text.partition("Wall time")
    assert {"workload", "pingpong,", "iterations", "24"} <= set(head.split())
    assert "way" not in head.split()
    assert "way" in tables


def test_without_rows_a_table_begins_with_its_columns() -> None:
    points = [a_point({"way": way}, {"wall_time": y}) for way, y in (("aa", 1.0), ("bb", 2.0))]
    lines = printed(a_document("x", points, None, "way")).splitlines()
    [heading] = [line for line in lines if "aa" in line]
    assert [cell.strip() for cell in heading.strip("┃").split("┃")] == ["aa", "bb"]
    [figures] = [line for line in lines if "1.00" in line]
    assert figures.count("│") == 3


def test_a_tail_has_a_table_of_its_own() -> None:
    long = {**a_metric(20.0), "p99": 88.0, "max": 881.25}
    points = [
        a_point({"size_bytes": size, "way": way}, {"wall_time": long, "busiest_core": 5.0})
        for size in (0, 1)
        for way in ("a", "b")
    ]
    console = Console(width=100)
    with console.capture() as capture:
        print_report(a_document("x", points, "size_bytes", "way"), console)
    text = capture.get()
    assert text.count("p99 / max") == 1
    assert text.count("88.00 / 881.2") == 4
    assert tail_words({**long, "p99.9": 99.0}) == "88.00 / 99.00 / 881.2"
    assert tail_title([long, {**long, "p99.9": 99.0}]) == "p99 / p99.9 / max"
    assert tail_words(None) == tail_words(a_metric(1.0)) == "—"
    assert text.count("± half of the 95 % interval") == 1
