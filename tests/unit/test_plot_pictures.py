"""From a chart to a picture: what is drawn, how it is told apart, and files that stay the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from support.results import load_fonts

from shrimpmx.errors import MachineError
from shrimpmx.report.plot.chart import (
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
from shrimpmx.report.plot.draw import figure_of, save
from shrimpmx.report.plot.draw_map import draw_map, name_spots
from shrimpmx.report.plot.draw_panel import draw_panel
from shrimpmx.report.plot.look import COLOURS, look_of, short_words
from shrimpmx.settings.strategies import COALESCING_NAMES

LINES = Axis("message size", ("0 B", "1 KiB", "32 KiB"), (9.0, 10.0, 15.0), "lines")
BARS = Axis("strategy", ("disabled", "timeout"), (0.0, 1.0))


def value(y: float, bound: bool = False) -> Value:
    return Value(y, y * 0.9, y * 1.2, bound)


def panel(axis: Axis, *series: Series, log: bool = False, reason: str = "") -> Panel:
    return Panel("Half round trip", axis, "Half round trip, µs", series, log, None, reason)


def chart(*panels: AnyPanel, columns: int = 1, title: str = "What is it?") -> Chart:
    return Chart("name", title, panels, columns, ("A paper, figure 5", "Measured on: a machine."))


@pytest.fixture(scope="module", autouse=True)
def _fonts() -> None:
    """matplotlib keeps the files of its fonts open: before the first look at open files."""
    load_fonts()


def axes_of(figure: Figure) -> list[Axes]:
    return list(figure.axes)


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def drawn(panel: Panel) -> Mock:
    """An Axes, with what was handed to it to draw a panel."""
    axes = Mock(wraps=Figure().add_subplot())
    draw_panel(axes, panel, {})
    return axes


def written(axes: Mock) -> dict[str, tuple[float, float]]:
    """The words on an Axes, arrows apart, and where they point to."""
    calls = [call.args for call in axes.annotate.call_args_list]
    return {words: place for words, place, *_ in calls if words}


def halves(call: Any) -> list[list[float]] | None:
    """Of drawn intervals the lower halves and the upper ones."""
    found: list[list[float]] | None = call.kwargs["yerr"]
    return found


OURS = Series("timeout", {0: value(75), 1: value(80), 2: value(110)}, style=1)
OTHER = Series("disabled", {0: value(10), 2: value(60)}, style=0)
BAR = Series("stream", {0: value(5), 1: value(6)}, style=3)
PAPER = Series("paper: timeout", {0: Value(70, 70, 70)}, style=1, paper=True)


@pytest.mark.parametrize("axis", [LINES, BARS])
def test_a_figure_of_another_distance_is_starred(axis: Axis) -> None:
    values = {0: value(75), 1: Value(80, 40, 300, starred=True)}
    axes = drawn(panel(axis, Series("timeout", values)))
    places = [place for words, place in written(axes).items() if words.endswith("*")]
    assert places == [(axis.positions[1], 300)]


def test_a_line_per_series_with_intervals_and_hollow_markers_for_the_paper() -> None:
    axes = drawn(panel(LINES, OURS, PAPER, OTHER))
    ours, paper, other = axes.errorbar.call_args_list
    assert [line.kwargs["label"] for line in (ours, paper, other)] == [
        *("timeout", "paper: timeout", "disabled")
    ]
    assert ours.args == ([9.0, 10.0, 15.0], [75, 80, 110])
    assert other.args == ([9.0, 15.0], [10, 60])
    below, above = halves(ours) or ([], [])
    assert (below, above) == (pytest.approx([7.5, 8, 11]), pytest.approx([15, 16, 22]))
    assert halves(paper) is None
    assert (paper.kwargs["markerfacecolor"], paper.kwargs["linestyle"]) == ("none", "none")
    assert paper.kwargs["color"] == ours.kwargs["color"]
    for look in ("color", "marker", "linestyle"):
        assert ours.kwargs[look] != other.kwargs[look]
    axes.set_xticks.assert_called_once_with(LINES.positions, list(LINES.words))
    axes.set_xlabel.assert_called_once_with("message size")
    axes.set_ylabel.assert_called_once_with("Half round trip, µs")


def test_the_legend_stands_outside_with_ours_before_the_papers() -> None:
    figure = figure_of(chart(panel(LINES, PAPER, OURS, OTHER), panel(LINES, OURS)))
    assert legend_of(figure) == ["timeout", "disabled", "paper: timeout"]
    figure.draw_without_rendering()
    (legend,) = figure.legends
    right = max(axes.get_window_extent().x1 for axes in axes_of(figure))
    assert legend.get_window_extent().x0 >= right


def test_a_bar_per_value_with_its_figure_above() -> None:
    ours = Series("this machine", {0: value(705.4), 1: value(0.01234)}, style=-1)
    paper = Series("paper", {0: Value(216.5, 216.5, 216.5, bound=True)}, style=-1, paper=True)
    axes = drawn(panel(BARS, ours, paper))
    filled, hollow = axes.bar.call_args_list
    assert [call.args[1] for call in (filled, hollow)] == [[705.4, 0.01234], [216.5]]
    assert hollow.kwargs["facecolor"] == "none"
    assert hollow.kwargs["edgecolor"] == filled.kwargs["facecolor"]
    assert hollow.args[0][0] > filled.args[0][0]
    assert {"705", "0.012", "<216"} <= set(written(axes))
    assert axes.get_ylim()[0] == 0


def test_parts_of_a_stack_stand_on_each_other_under_one_figure() -> None:
    user = Series("user", {0: value(30), 1: value(10)}, style=0, stack="time")
    rest = Series("rest", {0: Value(70, 60, 80), 1: Value(20, 20, 20)}, style=7, stack="time")
    other = Series("other", {0: value(5)}, style=1)
    axes = drawn(panel(BARS, user, rest, other))
    below, above, alone = axes.bar.call_args_list
    places, heights, _, bases = below.args
    assert (heights, bases) == ([30, 10], [0, 0])
    assert (above.args[0], above.args[1], above.args[3]) == (places, [70, 20], [30, 10])
    assert alone.args[0][0] > places[0]
    # Only the whole has an interval and a figure.
    assert halves(below) is None
    assert halves(above) == [[10, 0], [10, 0]]
    assert list(written(axes)) == ["100", "30", "5"]


def test_groups_of_places_are_named_above_them() -> None:
    grouped = Axis("", ("a", "b", "a", "b"), (0.0, 1.0, 2.8, 3.8), groups=(("x", 0.5), ("y", 3.3)))
    bars = Series("stream", {i: value(5) for i in range(4)})
    above = Mock(spines={"top": Mock()})
    axes = Mock(wraps=Figure().add_subplot())
    axes.secondary_xaxis.side_effect = {"top": above}.get
    draw_panel(axes, panel(grouped, bars), {})
    above.set_xticks.assert_called_once_with([0.5, 3.3], ["x", "y"])


def test_a_grid_has_a_colour_and_words_for_each_place() -> None:
    cells = (Cell(0, 0, 0.5, "sched\n0.5"), Cell(1, 0, 1.0, "block\n1"), Cell(1, 1, 2.0, "spin\n2"))
    grid = GridPanel("", "x, µs", "y, µs", "a ratio", ("0", "30"), ("0", "50"), cells)
    figure = figure_of(chart(grid, grid))
    figure.draw_without_rendering()
    axes, bar, _, _ = axes_of(figure)
    assert [text.get_text() for text in axes.texts] == [cell.words for cell in cells]
    # What is dark has white words.
    assert [text.get_color() for text in axes.texts] == ["white", "black", "white"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "50"]
    assert bar.get_ylabel() == "a ratio"
    # As far to either side, whatever the figures.
    assert [label.get_text() for label in bar.get_yticklabels()][::2] == ["0.5", "1", "2"]


def test_what_is_missing_is_said_in_its_place() -> None:
    some = Series("timeout", {0: value(5)}, missing=(1,))
    assert "n/a" in written(drawn(panel(BARS, some)))
    empty = drawn(panel(BARS, reason="the kernel gave none"))
    assert not empty.bar.called
    [text] = empty.text.call_args_list
    assert "the kernel gave none" in text.args[2]


def test_a_map_names_every_spot_and_sizes_it() -> None:
    spots = tuple(
        Spot(name, value(10 + index), value(1 / (index + 1)), float(index), index)
        for index, name in enumerate(COALESCING_NAMES)
    )
    panel = MapPanel("", "latency, µs", "interrupts", "CPU µs", spots, largest=10.0)
    axes, handles = Mock(wraps=Figure().add_subplot()), dict[str, Any]()
    draw_map(axes, panel, handles)
    name_spots(axes, panel)
    assert list(written(axes)) == list(COALESCING_NAMES)
    calls = [call.kwargs for call in axes.scatter.call_args_list]
    areas = {call["label"]: call["s"] for call in calls if "label" in call}
    assert list(areas) == list(COALESCING_NAMES)
    assert list(areas.values()) == sorted(areas.values())
    axes.set_yscale.assert_called_once_with("log")
    assert list(handles) == ["CPU µs: 10", "5", "1"]


@pytest.mark.parametrize(
    ("largest", "words"),
    [
        (802.0, ["irq: 802", "400", "80"]),
        (12345.0, ["irq: 12,345", "6,000", "1,000"]),
        (2.25, ["irq: 2.25", "1", "0.200"]),
    ],
)
def test_sizes_of_spots_are_explained_by_round_figures(largest: float, words: list[str]) -> None:
    spots = (Spot("a", value(1), value(1), largest, 0), Spot("b", value(2), value(3), 0.1, 0))
    handles: dict[str, Any] = {}
    draw_map(Figure().add_subplot(), MapPanel("", "x", "y", "irq", spots, largest=largest), handles)
    assert list(handles) == words


def test_labels_of_a_map_do_not_cover_each_other() -> None:
    spots = tuple(
        Spot(name, value(10 + 0.05 * index), value(1 + 0.01 * index), None, index)
        for index, name in enumerate(COALESCING_NAMES[:6])
    )
    figure = figure_of(chart(MapPanel("", "x", "y", "", spots, log_y=False)))
    figure.draw_without_rendering()
    # An annotation's own extent holds the line to its spot as well.
    boxes = [Text.get_window_extent(text) for text in axes_of(figure)[0].texts]
    covering = sum(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    assert covering == 0


def test_title_and_caption_are_there_and_no_text_is_a_formula() -> None:
    figure = figure_of(chart(panel(BARS, BAR), title="Does $x^ pay?\x07"))
    assert figure.get_suptitle() == r"Does \$x^ pay? "
    assert figure.get_supxlabel() == "A paper, figure 5\nMeasured on: a machine."
    figure.draw_without_rendering()


def test_words_at_an_axis_stand_aslant_and_apart_where_there_are_many() -> None:
    words = tuple(f"{n} KiB" for n in range(1, 41))
    many = Axis("message size", words, tuple(map(float, range(40))), "lines")
    line = Series("timeout", {index: value(5) for index in range(40)})
    (axes,) = axes_of(figure_of(chart(panel(many, line))))
    labels = axes.get_xticklabels()
    shown = [label.get_text() for label in labels if label.get_text()]
    assert {label.get_rotation() for label in labels} == {40.0}
    assert shown[0] == "1 KiB"
    assert 10 < len(shown) < 20


def test_styles_differ_in_colour_or_shape() -> None:
    looks = [look_of(style) for style in range(-1, len(COALESCING_NAMES))]
    assert len({(look.colour, look.marker) for look in looks}) == len(looks)
    # Bars have no marker.
    assert len({(look.colour, look.hatch) for look in looks}) == len(looks)
    assert len({look.colour for look in looks[1 : len(COLOURS) + 1]}) == len(COLOURS)


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        *((0, "0"), (0.04983, "0.05"), (0.8061, "0.806"), (92.43, "92.4")),
        *((705.4, "705"), (14507, "14,507"), (-1.149, "-1.15")),
    ],
)
def test_figures_in_short(figure: float, words: str) -> None:
    assert short_words(figure) == words


def test_files_are_written_and_stay_the_same(tmp_path: Path) -> None:
    picture = chart(panel(LINES, OURS, PAPER), panel(BARS, BAR), columns=2)
    first = save(picture, tmp_path / "a", ("png", "svg"))
    second = save(picture, tmp_path / "b", ("png", "svg"))
    assert [path.name for path in first] == ["name.png", "name.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    root = ElementTree.parse(first[1]).getroot()
    assert root.tag.endswith("svg")


def test_a_place_that_takes_no_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match=r"cannot be written: .*; give another directory"):
        save(chart(panel(BARS, BAR)), tmp_path / "file", ("png",))


def test_a_users_settings_change_nothing(tmp_path: Path) -> None:
    import matplotlib

    before = save(chart(panel(LINES, OURS)), tmp_path / "a", ("svg",))[0].read_bytes()
    with matplotlib.rc_context({"lines.linewidth": 9.0, "svg.hashsalt": "mine"}):
        after = save(chart(panel(LINES, OURS)), tmp_path / "b", ("svg",))[0].read_bytes()
        assert matplotlib.rcParams["lines.linewidth"] == 9.0
    assert before == after


def test_without_matplotlib_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MachineError, match=r"python -m pip install 'matplotlib>=3\.8'"):
        figure_of(chart(panel(BARS, BAR)))


def in_a_process_of_its_own(home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Draws in a fresh process with `home` as home; it prints where matplotlib keeps its cache."""
    code = (
        "from shrimpmx.report.plot.backend import matplotlib_here\n"
        "m = matplotlib_here(); print(m.get_configdir(), m.get_cachedir(), m.get_backend())"
    )
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "HOME": str(home), **variables},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )


def test_no_display_is_needed_and_a_home_keeps_no_settings_of_matplotlib(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    ran = in_a_process_of_its_own(home, MPLBACKEND="nonsense")
    cache = home / ".cache/shrimpmx/matplotlib"
    assert ran.stdout.split() == [str(cache), str(cache), "agg"]
    assert ran.stderr == ""
    assert not (home / ".config").exists()


def test_a_home_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no directory")
    ran = in_a_process_of_its_own(tmp_path / "home", TMPDIR=str(tmp_path))
    place = Path(ran.stdout.split()[0])
    assert place.parent == tmp_path
    assert not place.exists()  # gone with the process
    assert ran.stderr == ""


def test_matplotlib_is_loaded_on_use_only() -> None:
    code = "import sys, shrimpmx.commands.plot; print('matplotlib' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
