"""Panels of a result: one metric over one axis, a series for each value of others; and how
far the slow ones of a time go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shrimpmx.results.expectation_kinds import Place
from shrimpmx.results.metrics import shown_figures
from shrimpmx.results.statistics import PERCENTILES
from shrimpmx.results.words import heading_words, place_words, value_words
from shrimpmx.settings.strategies import COALESCING_NAMES, WAIT_NAMES
from shrimpmx.show.plot.chart import ONLY, Axis, Panel, Panels, Series, Value
from shrimpmx.show.plot.reading import (
    NOT_RUN,
    PointData,
    Result,
    metric_label,
    metric_title,
    unit_at_axis,
)

# A result's panels and how many stand side by side; None if its axes are not those of a figure.
Figure = Callable[[Result], tuple[Panels, int] | None]

# A panel whose figures are further apart than this has a logarithmic axis (ours).
LOG_LINES, LOG_BARS = 30.0, 200.0
# Numbers that lie further apart than this are drawn by their logarithm (ours).
LOG_PLACES = 32.0
OWN_COSTS = "this machine's own costs"
HERE, SIMULATED, PAPER = "this machine", "simulated hosts", "paper"
_TITLES = {
    "size_bytes": "message size",
    "coalescing": "coalescing strategy",
    "wait": "waiting strategy",
    "delay_us": "computing before each send",
    "pairs": "pairs of processes",
    "arrivals": "delays of messages",
    "company": "company of the processes",
    "irq_binding": "core that interrupts go to",
    "rank_core": "core that the process runs on",
    "steering": "what chooses the queue",
    "mark_early": "fragments by which the mark came early",
    "overtake": "fragments that the marked one overtook",
}
_WORDS = {
    ("idle", "sleep"): "cores may sleep",
    ("idle", "awake"): "cores kept awake",
    ("irq_binding", "round-robin"): "interrupts to all cores in turn",
    ("irq_binding", "per-queue"): "a queue and a core for each",
    ("move_every", 0): "processes stay",
}
# A strategy looks the same in every picture.
_STYLES = {"coalescing": COALESCING_NAMES, "wait": WAIT_NAMES}


def axis_words(axis: str) -> str:
    """What an axis is called below a panel."""
    return _TITLES.get(axis, axis.rpartition(".")[2].replace("_", " "))


def series_words(axis: str, value: Any) -> str:
    """A value of an axis in a legend."""
    known = _WORDS.get((axis, value)) if isinstance(value, str | int) else None
    if known is None and axis == "irq_binding":
        return f"interrupts to core {value}"
    if known is None and axis == "move_every":
        return f"processes move every {value} round trips"
    return known or heading_words(axis, value)


def style_of(axis: str, value: Any, index: int) -> int:
    """The style of a value of an axis: a strategy's own, else by its index."""
    names = _STYLES.get(axis, ())
    return names.index(value) if isinstance(value, str) and value in names else index


def numbers_of(values: Sequence[Any]) -> list[float] | None:
    """The values as numbers if lines can join them: three or more, all numbers."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return [float(value) for value in values] if numbers and len(values) >= 3 else None


def axis_of(result: Result, axis: str | None, bars: bool = False) -> Axis:
    """The horizontal axis for an axis of the sweep; None makes one place: the caption says under
    which settings it was measured.
    """
    if axis is None:
        return Axis("setting", ("the only one",), (0.0,))
    values = result.axes[axis]
    words = tuple(value_words(axis, value) for value in values)
    numbers = None if bars else numbers_of(values)
    if numbers is None:
        return Axis(axis_words(axis), words, tuple(map(float, range(len(values)))))
    positive = [number for number in numbers if number > 0]
    spread = max(positive, default=1) / min(positive, default=1)
    wide = axis.endswith("_bytes") or spread >= LOG_PLACES
    if min(numbers) < 0 or not wide:
        return Axis(axis_words(axis), words, tuple(numbers), "lines")
    # Zero has no logarithm: it stands one step before the smallest.
    zero = math.log2(min(positive, default=1)) - 1
    positions = tuple(math.log2(number) if number else zero for number in numbers)
    return Axis(axis_words(axis), words, positions, "lines")


def metric_panel(
    result: Result,
    metric: str,
    rows: str | None,
    lines: Sequence[str] = (),
    place: Place | None = None,
    title: str = "",
    bars: bool = False,
) -> Panel:
    """A metric over the values of `rows`, with a series for each combination of `lines`, at
    `place`. The paper's figures stand beside ours; what is missing becomes a note.
    """
    axis = axis_of(result, rows, bars)
    where = dict(place or {})
    series: list[Series] = []
    everything: list[Value | str] = []
    for index, line in enumerate(result.places(lines)):
        here = [{**where, **line, **({rows: v} if rows else {})} for v in _values(result, rows)]
        found = [result.value(result.find(spot), metric) for spot in here]
        label = ", ".join(series_words(name, value) for name, value in line.items()) or HERE
        style = _line_style(line, index)
        theirs = [published_value(result, metric, result.find(spot)) for spot in here]
        series += ours_and_paper(label, style, found, theirs)
        everything += found
    shown, reason = shown_or_why(result, metric, series, everything)
    heading = title or panel_title(metric, where)
    log = is_wide(shown, axis.kind)
    return Panel(heading, axis, metric_label(metric), shown, log, None, reason)


def shown_or_why(
    result: Result, metric: str, series: Sequence[Series], found: Iterable[Value | str]
) -> tuple[tuple[Series, ...], str]:
    """The series of a panel, and a note for each reason why something in it is missing; or no
    series, since there is nothing of ours, and the reasons in a few words.
    """
    reasons: dict[str, int] = {}
    for value in found:
        if isinstance(value, str) and value != NOT_RUN:
            reasons[value] = reasons.get(value, 0) + 1
    if all(one.paper for one in series):
        return (), "; ".join(reasons) or NOT_RUN
    note_missing(result, metric, reasons)
    return tuple(series), ""


def _values(result: Result, rows: str | None) -> Sequence[Any]:
    return result.axes[rows] if rows else [None]


def _line_style(line: Mapping[str, Any], index: int) -> int:
    if not line:
        return ONLY
    if len(line) == 1:
        name, value = next(iter(line.items()))
        return style_of(name, value, index)
    return index


def published_value(result: Result, metric: str, point: PointData | None) -> Value | None:
    """The paper's figure at the place with a point's values, if it gives one."""
    found = result.published_at(metric, point) if point else None
    return Value(found.value, found.value, found.value, found.bound) if found else None


def ours_and_paper(
    label: str,
    style: int,
    ours: Sequence[Value | str],
    papers: Sequence[Value | None],
) -> list[Series]:
    """The series of our values, and that of the paper's where it has any."""
    values = {i: value for i, value in enumerate(ours) if isinstance(value, Value)}
    theirs = {i: found for i, found in enumerate(papers) if found is not None}
    missing = tuple(
        i for i, found in enumerate(ours) if isinstance(found, str) and found != NOT_RUN
    )
    series = [Series(label, values, style, missing=missing)] if values else []
    name = PAPER if label == HERE else f"{PAPER}: {label}"
    return [*series, Series(name, theirs, style, paper=True)] if theirs else series


def note_missing(result: Result, metric: str, reasons: Mapping[str, int]) -> None:
    """A note for each reason why a metric has no figure at some places."""
    for reason, count in reasons.items():
        places = "one place" if count == 1 else f"{count} places"
        result.notes[f"{metric_title(metric)} is not available at {places}: {reason}"] = None


def panel_title(metric: str, place: Place) -> str:
    """A metric, if one is named, and where it was taken."""
    parts = [metric_title(metric), *(place_words(axis, value) for axis, value in place.items())]
    return ", ".join(part for part in parts if part)


def is_wide(series: Iterable[Series], kind: str) -> bool:
    """Whether the figures lie so far apart that only their logarithms can be told."""
    figures = [value.y for one in series for value in one.values.values()]
    limit = LOG_LINES if kind == "lines" else LOG_BARS
    return bool(figures) and min(figures) > 0 and max(figures) / min(figures) >= limit


# With fewer samples than this one takes, a maximum says little.
LEAST = next(iter(PERCENTILES))
TAIL = (*PERCENTILES, "max")


def tail_panels(result: Result) -> list[Panel]:
    """A panel for each metric with samples enough, and each place of the axes that it does not run
    along. All of one unit have the same kind of axis, by which they can be compared.
    """
    rows = result.rows or result.columns
    axes = [*([result.columns] if result.rows and result.columns else []), *result.others]
    found = [
        (unit_at_axis(metric), panel)
        for metric in result.metrics
        for place in result.places(axes)
        if (panel := _panel(result, metric, rows, place)) is not None
    ]
    logs = {unit: _log([panel for other, panel in found if other == unit]) for unit, _ in found}
    return [replace(panel, log=logs[unit]) for unit, panel in found]


def _log(panels: Sequence[Panel]) -> bool:
    """Whether panels have logarithmic axes: one needs it, and no figure of any is 0 or less."""
    series = [each for panel in panels for each in panel.series]
    positive = all(value.y > 0 for each in series for value in each.values.values())
    # Bars, too: the median is to be seen beside its maximum.
    return positive and any(is_wide(panel.series, "lines") for panel in panels)


def _panel(result: Result, metric: str, rows: str | None, place: Mapping[str, Any]) -> Panel | None:
    """The median of a metric, its percentiles and its maximum, over the values of `rows`; None
    where no point has samples enough.
    """
    values = result.axes[rows] if rows else [None]
    points = [result.find({**place, **({rows: value} if rows else {})}) for value in values]
    found = {i: point["metrics"].get(metric, {}) for i, point in enumerate(points) if point}
    shown = {i: shown_figures(each) for i, each in found.items()}
    tails = {i: each for i, each in shown.items() if LEAST in each}
    if not tails:
        return None
    medians = {i: result.value(points[i], metric) for i in tails}
    series = [Series("median", {i: v for i, v in medians.items() if isinstance(v, Value)}, 0)]
    for style, name in enumerate(TAIL, 1):
        figures = {i: each[name] for i, each in tails.items() if name in each}
        if figures:
            series.append(Series(name, {i: Value(y, y, y) for i, y in figures.items()}, style))
    axis = axis_of(result, rows)
    return Panel(panel_title(metric, place), axis, metric_label(metric), tuple(series))
