"""Panels of how far the slow ones of a time go: its percentiles and maximum beside the median."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shrimpmx.results.metrics import shown_figures
from shrimpmx.results.statistics import PERCENTILES
from shrimpmx.show.plot.chart import Panel, Series, Value
from shrimpmx.show.plot.panels import axis_of, is_wide, panel_title
from shrimpmx.show.plot.reading import Result, metric_label, unit_at_axis

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
