"""From a chart to a drawing: a mark for each figure, told by more than colour, and all words."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from shrimpmx.errors import MachineError
from shrimpmx.settings.strategies import COALESCING_NAMES
from shrimpmx.show.plot import draw
from shrimpmx.show.plot.chart import (
    ONLY,
    AnyPanel,
    Axis,
    Chart,
    GridCell,
    GridPanel,
    MapPanel,
    Panel,
    Series,
    Spot,
    Value,
)
from shrimpmx.show.plot.draw import drawn, figures_of, picture_of, save
from shrimpmx.show.plot.layers import HEIGHT, SYMBOL, WIDTH, figures_at, places_at, scale_of
from shrimpmx.show.plot.series import panel_spec, samples_of
from shrimpmx.show.plot.spots import map_spec
from shrimpmx.show.plot.style import COLOURS, HATCHES, patterns, short_words, style_of

PLACES = Axis("size", ("0 B", "1 KiB", "1 MiB"), (0.0, 1.0, 2.0))
LINES = Axis(PLACES.label, PLACES.words, PLACES.positions, "lines")
NUMBERS = {f"s{x}": str(number) for number, x in enumerate((5, 5.6, 8, 1, 9), 1)}
LONG = "a setting of many words, each of which says what it is, " * 3


def value(y: float, bound: bool = False) -> Value:
    return Value(y, y * 0.9, y * 1.2, bound)


def chart(*panels: AnyPanel, title: str = "What is it?") -> Chart:
    return Chart("name", title, panels, 2, ("A paper, figure 5", "Measured on: a machine."))


def seen(*panels: AnyPanel) -> list[Xml.Element]:
    specs = [figure.spec for figure in figures_of([chart(*panels)])]
    return [Xml.fromstring(svg) for svg in drawn(specs)]


def named(svg: Xml.Element, name: str) -> list[str]:
    return [each.text or "" for each in svg.iterfind(f".//{{*}}{name}")]


def words(svg: Xml.Element) -> list[str]:
    """All of its text, a line of more than one as they are."""
    texts = svg.iterfind(".//{*}text")
    return ["|".join(filter(None, each.itertext())) for each in texts]


def outside(svg: Xml.Element) -> Iterator[str]:
    """The words whose ends lie beyond the drawing; a letter is taken as half as wide as high."""
    width, height = float(svg.get("width", 0)), float(svg.get("height", 0))

    def look(element: Xml.Element, x: float, y: float) -> Iterator[str]:
        turn = element.get("transform", "")
        for across, up in re.findall(r"translate\(([-\d.]+),([-\d.]+)\)", turn.split("rotate")[0]):
            x, y = x + float(across), y + float(up)
        if element.tag.endswith("text") and "rotate" not in turn:
            text = max(element.itertext(), key=len, default="")
            long = 0.45 * float(element.get("font-size", "0px")[:-2]) * len(text)
            start = x - {"middle": long / 2, "end": long}.get(element.get("text-anchor", ""), 0)
            if start < -1 or start + long > width + 1 or not 0 <= y <= height:
                yield text
        for child in element:
            yield from look(child, x, y)

    return look(svg, 0.0, 0.0)


def test_each_figure_has_a_mark_that_says_it() -> None:
    ours = Series("spin", {0: Value(5, 4, 6), 2: Value(700, 700, 700)}, 1)
    paper = Series("paper: spin", {0: Value(8, 8, 8), 1: Value(3, 3, 3, bound=True)}, 1, paper=True)
    panels = [
        Panel("title", axis, "time, µs", (ours, paper), log)
        for axis in (PLACES, LINES)
        for log in (False, True)
    ]
    for svg in seen(*panels):
        assert named(svg, "title") == [
            "spin, 0 B: 5 [4, 6]",
            "spin, 1 MiB: 700",
            "paper: spin, 0 B: 8",
            "paper: spin, 1 KiB: less than 3",
        ]
        said = words(svg)
        assert {*PLACES.words, "size", "time, µs", "↓", "spin", "paper: spin"} <= set(said)
        assert said.index("spin") < said.index("paper: spin")
        assert list(outside(svg)) == []


def test_lines_bars_and_stacks_have_their_places() -> None:
    parts = [Value(1, 1, 1), Value(2, 1, 3)]
    stack = tuple(Series(str(v.y), {0: v}, n, stack="s") for n, v in enumerate(parts))
    alone = Series("alone", {0: value(5), 1: Value(4, 1, 9, starred=True)}, ONLY, missing=(2,))
    paper = Series("paper", {0: Value(6, 6, 6)}, ONLY, paper=True)
    figures = figures_of([chart(Panel("", PLACES, "", (*stack, alone, paper), baseline=2.0))])
    bars = [each for each in next(figures).spec["vconcat"][0]["layer"] if "x2" in each["encoding"]]
    rows = [row for layer in bars for row in layer["data"]["values"] if "bottom" in row]
    below, above, *_, theirs = rows
    assert (below["y"], above["bottom"], above["y"]) == (1, 1, 3)
    assert below["x"] == above["x"] < rows[2]["x"] < theirs["x"]
    # Only the whole has an interval and a figure.
    assert [(row["text"], row["low"], row["high"]) for row in (below, above)] == [
        ("", 1, 1),
        ("3", 2, 4),
    ]
    [svg] = seen(Panel("", PLACES, "", (*stack, alone, paper), baseline=2.0))
    assert {"3", "5", "4*", "n/a", "6"} <= set(words(svg))


@pytest.mark.parametrize("log", [False, True])
def test_points_at_one_place_are_rings_around_those_drawn_later(log: bool) -> None:
    figures = [(5.0, 90.0, 1.0), (5.01, 30.0, 50.0), (5.0, 60.0, 1.0), (4.99, 10.0, 20.0)]
    series = [
        Series(f"s{n}", {i: Value(y, y, y) for i, y in enumerate(ys)}, n)
        for n, ys in enumerate(figures)
    ]
    papers = Series("paper", {0: Value(5.0, 5.0, 5.0)}, paper=True)
    spec = panel_spec(Panel("p", LINES, "µs", (*series, papers), log))
    points = next(e for e in spec["layer"] if e["mark"] == {"type": "point", "opacity": 1})
    rows = [row for row in points["data"]["values"] if not row["paper"]]
    sizes = {x: [row["size"] for row in rows if row["x"] == x] for x in LINES.positions}
    assert sizes[0.0] == sorted(set(sizes[0.0]), reverse=True)
    alone = [*sizes[1.0], *sizes[2.0][1:], sizes[0.0][-1]]
    assert alone == pytest.approx([SYMBOL] * len(alone))
    # Words below the plot stand clear of the largest.
    assert 5 + spec["encoding"]["x"]["axis"]["labelPadding"] > max(sizes[0.0]) ** 0.5 / 2
    assert sizes[2.0][0] > SYMBOL


def test_a_figure_without_room_keeps_its_star() -> None:
    series = tuple(Series(str(n), {0: Value(1234, 1, 2000, starred=n == 3)}, n) for n in range(20))
    [svg] = seen(Panel("", PLACES, "", series))
    assert "*" in words(svg)
    assert "1,234" not in words(svg)


def test_styles_differ_by_more_than_their_colour() -> None:
    looks = [style_of(style) for style in range(-1, len(COALESCING_NAMES))]
    assert len({(look.colour, look.marker) for look in looks}) == len(looks)
    assert len({look.fill for look in looks}) == len(looks)
    assert len({look.colour for look in looks[1 : len(COLOURS) + 1]}) == len(COLOURS)
    series = tuple(Series(f"s{style}", {0: value(1)}, style) for style in range(7))
    bars = [each.symbol for each in samples_of(Panel("", PLACES, "", series))]
    lines = [each.symbol for each in samples_of(Panel("", LINES, "", series))]
    for differing in (
        {each["fill"] for each in bars},
        {each["shape"] for each in lines},
        {tuple(each["dash"]) for each in lines[:4]},
    ):
        assert len(differing) in (4, 7)
    found = patterns("".join(each["fill"] for each in bars))
    assert found.count("<pattern") == 6
    assert all(hatch in found for hatch in HATCHES[1:7])


@pytest.mark.parametrize(
    "figures", [[0.0], [5.0], [84.0, 85.0], [-3.0, 2.0], [0.0, 0.0], [1e-9, 1e9], [1e17]]
)
@pytest.mark.parametrize("log", [False, True])
def test_any_figures_have_an_axis(figures: list[float], log: bool) -> None:
    scale = scale_of(figures, log)
    low, high = scale["domain"]
    shown = [figure for figure in figures if figure > 0 or not log]
    assert low < high
    assert all(low <= figure <= high for figure in shown)
    axis: dict[str, Any] = figures_at("y", "", scale)["y"]["axis"]
    assert not log or len(axis["values"]) >= 2


def test_words_at_an_axis_stand_aslant_and_apart_where_there_are_many() -> None:
    names = [f"{n} KiB" for n in range(1, 41)]
    axis = places_at("x", "size", names, [*map(float, range(40))], (-1.0, 40.0))["x"]["axis"]
    assert axis["labelAngle"] < 0
    shown = re.findall(r"\d+ KiB", axis["labelExpr"])
    assert shown[0] == "1 KiB"
    assert 10 < len(shown) < 25
    assert "labelAngle" not in places_at("x", "", names[:5], range(5), (-1, 5))["x"]["axis"]
    # A long name beside others keeps its place, in as many lines as there is room for.
    names = [LONG, LONG, "", "\n\n", "d", LONG]
    long = places_at("x", "", names, range(6), (-0.5, 5.5))["x"]["axis"]
    lines = json.loads(long["labelExpr"].partition("[indexof")[0])
    assert all(" ".join(lines[end]).startswith("a setting of many words") for end in (0, 1, 5))
    assert [len(each) for each in lines] == [3, 3, 1, 1, 1, 3]


def test_spots_that_cover_each_other_are_named_together() -> None:
    def spot(name: str, x: float) -> Spot:
        return Spot(name, Value(x, x, x), Value(2, 1, 3), 4.0)

    spots = (spot("a", 1), spot("b", 1.001), spot(LONG, 3), spot("", 2))
    panel = MapPanel("m", "x", "y", "interrupts", spots, 4.0)
    [svg] = seen(panel)
    assert {"1, 2", "3", "1 a", "2 b", "interrupts:", "4", "2", "0.4"} <= set(words(svg))
    assert LONG.strip() in " ".join(words(svg)).replace("|", " ").replace("3 a s", "a s")
    assert named(svg, "title")[3] == "2, 2; interrupts 4"
    assert list(outside(svg)) == []


@pytest.mark.parametrize("wide", [0.0, 0.4, 3.0])
@pytest.mark.parametrize("high", [0.0, 0.4, 3.0])
def test_no_number_of_a_spot_is_struck_by_an_interval(wide: float, high: float) -> None:
    def around(y: float, half: float) -> Value:
        return Value(y, y - half, y + half)

    middles = ((5, 5), (5.6, 5.1), (8, 4.6), (1, 8), (9, 1))
    spots = [Spot(f"s{x}", around(x, wide), around(y, high), 4.0) for x, y in middles]
    spec = map_spec(panel := MapPanel("m", "x", "y", "", tuple(spots), 4.0, False), NUMBERS)
    ends = {axis: spec["encoding"][axis]["scale"]["domain"] for axis in "xy"}

    def at(axis: str, figure: float) -> float:
        low, high = ends[axis]
        share = (figure - low) / (high - low)
        return WIDTH * share if axis == "x" else HEIGHT * (1 - share)

    rows = spec["layer"][-1]["data"]["values"]
    assert sorted(row["text"] for row in rows) == sorted(NUMBERS[spot.label] for spot in spots)
    for row in rows:
        x, y = at("x", row["x"]) + row["dx"], at("y", row["y"]) + row["dy"]
        assert (0 < x < WIDTH, 0 < y < HEIGHT) == (True, True)
        for spot in panel.spots:
            left, right = at("x", spot.x.low), at("x", spot.x.high)
            top, bottom = at("y", spot.y.high), at("y", spot.y.low)
            beyond_x = not left - 4 < x < right + 4 or not wide
            beyond_y = not top - 6 < y < bottom + 6 or not high
            assert beyond_x or abs(y - at("y", spot.y.y)) > 4
            assert beyond_y or abs(x - at("x", spot.x.y)) > 2


def test_a_grid_has_a_colour_and_words_for_each_place() -> None:
    cells = (GridCell(0, 0, 2.0, "2.0\nSC"), GridCell(1, 1, 0.5, "0.5"))
    [svg] = seen(GridPanel("g", "x", "y", "ratio", ("0", "1"), ("low", "high"), cells))
    assert {"2.0|SC", "0.5", "low", "high", "In each cell: ratio"} <= set(words(svg))
    marks = [each for each in svg.iter() if each.get("fill-opacity") == "0.7"]
    assert len({mark.get("fill") for mark in marks}) == 2


def test_a_picture_has_title_panels_legend_and_caption_once() -> None:
    ours = Series("timeout", {0: value(75), 1: value(80), 2: value(110)}, 1)
    grouped = Axis("", ("a", "b"), (0.0, 1.0), groups=(("all", 0.5),))
    panels = (
        Panel(LONG, LINES, "", (ours,)),
        Panel("", grouped, "", (Series("timeout", {0: value(5)}, 1),)),
        Panel("third", PLACES, "", (), reason="the kernel gave none"),
    )
    svg = Xml.fromstring(picture_of(chart(*panels, title="Does $x^ <b> &amp; pay?\x07")).svg())
    said = words(svg)
    assert [said.count(each) for each in ("timeout", "all", "third")] == [1, 1, 1]
    assert "Does $x^ <b> &amp; pay?" in said
    assert "not available here: the kernel gave none" in said
    assert "A paper, figure 5|Measured on: a machine." in said
    assert LONG.strip() in [each.replace("|", " ") for each in said]
    assert list(outside(svg)) == []
    figures = list(figures_of([chart(*panels)]))
    assert [figure.reason for figure in figures] == ["", "", "the kernel gave none"]


def test_files_are_written_and_stay_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = chart(Panel("t", PLACES, "y", (Series("a", {0: value(5)}, 9),)))
    first = save([picture], tmp_path / "a", ("png", "svg"))
    monkeypatch.setenv("FONTCONFIG_FILE", "/dev/null")
    second = save([picture], tmp_path / "b", ("png", "svg"))
    assert [path.name for path in first] == ["name.png", "name.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    svg = first[1].read_text()
    assert 'fill="url(#s9)"' in svg
    assert '<pattern id="s9"' in svg


def test_a_place_that_takes_no_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match=r"cannot be written: .*; give another directory"):
        save([chart()], tmp_path / "file", ("svg",))


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MachineError, match=r"python -m pip install 'vl-convert-python"):
        drawn([{}])


def test_a_renderer_that_fails_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program, said in (("raise OSError('no memory')", "no memory"), ("exit(3)", "exit code 3")):
        (tmp_path / "renderer.py").write_text(program)
        monkeypatch.setattr(draw, "_RENDERER", tmp_path / "renderer.py")
        with pytest.raises(MachineError, match=f"charts cannot be drawn: .*{said}"):
            drawn([{}])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    with pytest.raises(MachineError, match="charts cannot be drawn: No such file"):
        drawn([{}])


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        *((0, "0"), (0.04983, "0.05"), (0.8061, "0.806"), (92.43, "92.4")),
        *((705.4, "705"), (14507, "14,507"), (-1.149, "-1.15")),
    ],
)
def test_figures_in_short(figure: float, said: str) -> None:
    assert short_words(figure) == said
