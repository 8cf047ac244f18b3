"""Figures of a page: each value has its mark, in its place, told by its shape as well."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from support.page import Page
from support.results import a_document, a_metric, a_point, write_result

from shrimpmx.cli import main
from shrimpmx.page.part import core_of
from shrimpmx.page.svg.figure import figures_of
from shrimpmx.page.svg.scale import scale_of
from shrimpmx.report.plot.chart import (
    ONLY,
    AnyPanel,
    Axis,
    Cell,
    Chart,
    GridPanel,
    MapPanel,
    Panel,
    Series,
    Spot,
    Value,
)
from shrimpmx.results.metrics import METRICS

PLACES = Axis("size", ("0 B", "1 KiB", "1 MiB"), (0.0, 1.0, 2.0))


def drawn(panel: AnyPanel) -> Xml.Element:
    [figure] = figures_of([Chart("name", "title", (panel,))])
    return Xml.fromstring(figure.svg)


def marks(svg: Xml.Element, kind: str) -> list[Xml.Element]:
    return [each for each in svg.iter() if kind in each.get("class", "").split()]


def titles(svg: Xml.Element) -> list[str]:
    return [each.text or "" for each in svg.iter("title")]


def outside(svg: Xml.Element) -> list[float]:
    """The places of words and straight lines that lie beyond the drawing."""
    box = [float(each) for each in svg.get("viewBox", "").split()]
    found = [(each.get("x"), each.get("y")) for each in svg.iter("text")]
    found += [(e.get(f"x{n}"), e.get(f"y{n}")) for e in svg.iter("line") for n in "12"]
    return [
        float(value or 0)
        for place in found
        for value, most in zip(place, box[2:], strict=True)
        if not 0 <= float(value or 0) <= most
    ]


@pytest.mark.parametrize("kind", ["bars", "lines"])
@pytest.mark.parametrize("log", [False, True])
def test_each_figure_has_a_mark_that_says_it(kind: str, log: bool) -> None:
    axis = Axis("size", PLACES.words, PLACES.positions, kind)  # type: ignore[arg-type]
    ours = Series("spin", {0: Value(5, 4, 6), 2: Value(700, 700, 700)}, 1)
    paper = Series("paper: spin", {0: Value(8, 8, 8), 1: Value(3, 3, 3, bound=True)}, 1, paper=True)
    svg = drawn(Panel("title", axis, "time, µs", (ours, paper), log))
    assert titles(svg) == [
        "spin, 0 B: 5 [4, 6]",
        "spin, 1 MiB: 700",
        "paper: spin, 0 B: 8",
        "paper: spin, 1 KiB: less than 3",
    ]
    assert len(marks(svg, "paper")) == 2
    assert len(marks(svg, "interval")) == 1
    assert len(marks(svg, "arrow")) == 1
    assert outside(svg) == []
    words = [each.text for each in svg.iter("text")]
    assert [word for word in words if word in axis.words] == list(axis.words)


def test_series_differ_by_more_than_their_colour() -> None:
    values = {0: Value(1, 1, 1), 1: Value(2, 2, 2), 2: Value(3, 3, 3)}
    series = tuple(Series(f"s{style}", values, style) for style in range(7))
    bars = drawn(Panel("", PLACES, "", series))
    assert len({each.get("class") for each in marks(bars, "hatch")}) == 6
    axis = Axis("size", PLACES.words, PLACES.positions, "lines")
    svg = drawn(Panel("", axis, "", series))
    # All have the same figures.
    assert len({each.get("d") for each in marks(svg, "mark")[::3]}) == 7
    assert len({each.get("class", "").split()[-1] for each in marks(svg, "line")}) == 4
    [figure] = figures_of([Chart("", "", (Panel("", axis, "", series),))])
    assert [name for _, name in figure.legend] == [each.label for each in series]


def test_a_stack_stands_on_its_parts_and_has_one_interval() -> None:
    parts = [Value(1, 1, 1), Value(2, 1, 3)]
    series = tuple(Series(str(v.y), {0: v}, n, stack="s") for n, v in enumerate(parts))
    svg = drawn(Panel("", Axis("", ("here",), (0.0,)), "", series))
    assert len(marks(svg, "interval")) == 1
    assert "3" in [each.text for each in marks(svg, "small")]
    tops = [each.get("d", "").split("V")[1].split("h")[0] for each in marks(svg, "bar")]
    assert float(tops[1]) < float(tops[0])


def test_what_is_missing_is_said() -> None:
    series = (Series("a", {0: Value(2, 2, 2, starred=True)}, ONLY, missing=(1,)),)
    words = [each.text for each in drawn(Panel("", PLACES, "", series)).iter("text")]
    assert "n/a" in words
    assert "2*" in words
    [figure] = figures_of([Chart("", "", (Panel("t", PLACES, "", (), reason="no PMU"),))])
    assert (figure.svg, figure.reason) == ("", "no PMU")


@pytest.mark.parametrize(
    "figures", [[0.0], [5.0], [84.0, 85.0], [-3.0, 2.0], [0.0, 0.0], [1e-9, 1e9], [1e17]]
)
@pytest.mark.parametrize("log", [False, True])
def test_any_figures_have_an_axis(figures: list[float], log: bool) -> None:
    scale = scale_of(figures, 200.0, 10.0, log)
    assert 2 <= len(scale.ticks()) <= 20
    places = [scale.place(each) for each in (*figures, *scale.ticks())]
    assert all(9.9 <= place <= 200.1 for place in places)


def test_spots_that_cover_each_other_are_named_together() -> None:
    def spot(name: str, x: float) -> Spot:
        return Spot(name, Value(x, x, x), Value(2, 1, 3), 4.0)

    spots = (spot("a", 1), spot("b", 1.001), spot("c", 3), spot("", 2))
    panel = MapPanel("m", "x", "y", "interrupts", spots, 4.0)
    svg = drawn(panel)
    assert [each.text for each in marks(svg, "small")] == ["1, 2", "3"]
    [figure] = figures_of([Chart("", "", (panel,))])
    assert [name for _, name in figure.legend[:3]] == ["1 a", "2 b", "3 c"]
    assert titles(svg)[3] == "2, 2; interrupts 4"
    assert outside(svg) == []


def test_a_grid_has_the_words_of_its_cells() -> None:
    cells = (Cell(0, 0, 2.0, "2.0\nSC"), Cell(1, 1, 0.5, "0.5"))
    grid = GridPanel("g", "x", "y", "ratio", ("0", "1"), ("0", "1"), cells)
    svg = drawn(grid)
    words = [each.text for each in svg.iter("text")]
    assert words[:3] == ["2.0", "SC", "0.5"]
    assert len(marks(svg, "above")) == len(marks(svg, "below")) == 1


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
    shown = [each["class"].split() for each in page.attributes["path"] if "class" in each]
    assert len([words for words in shown if words[0] == "mark"]) >= 1000
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
