"""Figures of a result for charts: which axes it has, and a value or a reason for each place."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.results.expectation import common_state
from shrimpmx.results.expectation_kinds import Place
from shrimpmx.results.metrics import METRICS, shown_figures
from shrimpmx.results.runs import runs_of
from shrimpmx.results.statistics import (
    Samples,
    interval_of,
    median_of,
    ratio_of_medians,
    run_medians,
)
from shrimpmx.results.words import titled
from shrimpmx.show.axis_layout import PointIndex, axis_layout
from shrimpmx.show.cells import is_unusual, usual_state
from shrimpmx.show.plot.chart import Value

PointData = Mapping[str, Any]

_UNITS = {"us": "µs", "k msg/s": "thousand messages/s", "irq/msg": "interrupts per message"}
NOT_RUN = "not run"


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper at `place`: values of axes. `bound`: it lies below that.

    `source`: the paper's words and their section; empty for a table, which the scenario names.
    """

    scenario: str
    metric: str
    place: Mapping[str, Any]
    value: float
    source: str
    bound: bool = False


def published_figure(
    figures: Iterable[PaperFigure], scenario: str, metric: str, values: Mapping[str, Any]
) -> PaperFigure | None:
    """The one of `figures` at the place with these values of all parameters, if there is one."""
    for figure in figures:
        same_place = all(values.get(axis) == value for axis, value in figure.place.items())
        if (figure.scenario, figure.metric) == (scenario, metric) and same_place:
            return figure
    return None


class Result:
    """A result document as charts read it. InputError if no point of it was finished.

    `rows` and `columns` are the axes of its tables, `others` the rest of what varies; `published`
    are figures of papers to draw beside its own.
    """

    def __init__(self, document: Mapping[str, Any], published: Sequence[PaperFigure] = ()) -> None:
        self.document = document
        self.scenario: str = document["scenario"]
        self.published = [each for each in published if each.scenario == self.scenario]
        self.points: Sequence[PointData] = document["points"]
        if not self.points:
            raise InputError(f"the result of {self.scenario} has no finished point yet")
        layout = axis_layout(document)
        self.axes, self.others = layout.axes, layout.others
        self.rows, self.columns = layout.rows, layout.columns
        self.notes: dict[str, None] = {}
        self._index = PointIndex(self.points)
        self._usual = usual_state(document)

    @property
    def metrics(self) -> list[str]:
        """The metrics of its points, in order."""
        return list(dict.fromkeys(name for point in self.points for name in point["metrics"]))

    def published_at(self, metric: str, point: PointData) -> PaperFigure | None:
        """The paper's figure at the place with a point's values, if it gives one."""
        return published_figure(self.published, self.scenario, metric, self.values(point))

    def has(self, *axes: str) -> bool:
        """Whether the points vary, or are declared to vary, by all these axes."""
        return all(axis in self.axes for axis in axes)

    def find(self, place: Place) -> PointData | None:
        """The point at `place`, or None if it was not run."""
        found = self._index.find(place)
        return found[0] if found else None

    def places(self, axes: Sequence[str]) -> list[dict[str, Any]]:
        """Every combination of the values of some axes."""
        products = itertools.product(*(self.axes[axis] for axis in axes))
        return [dict(zip(axes, values, strict=True)) for values in products]

    def values(self, point: PointData) -> dict[str, Any]:
        """All parameters of a point by field, those that the scenario leaves alone included."""
        groups = self.document.get("parameters", {}).values()
        fields = [group for group in groups if isinstance(group, dict)]
        return {name: v for group in fields for name, v in group.items()} | dict(point["params"])

    def value(self, point: PointData | None, metric: str) -> Value | str:
        """The median of a metric with its interval, in times of the emulated platform; or why
        there is none.
        """
        if point is None:
            return NOT_RUN
        found = point["metrics"].get(metric)
        if found is None:
            return "not measured"
        if "unavailable" in found:
            return str(found["unavailable"])
        figures = shown_figures(found)
        if "median" not in figures:
            raise InputError(
                f"the result of {self.scenario} is damaged: {metric} of a point has no median"
            )
        low, high = figures["ci95"]
        starred = is_unusual(found, self._usual)
        return Value(figures["median"], low, high, starred=starred)

    def ratio(self, over: PointData | None, under: PointData | None, metric: str) -> Value | str:
        """A metric of one point by that of another, from runs with the CPUs at one distance."""
        runs = self._runs(metric, over, under)
        if isinstance(runs, str):
            return runs
        if median_of(runs[1]) <= 0:
            return f"{metric} is 0 where it divides"
        ratio = ratio_of_medians(runs[0], runs[1])
        return Value(ratio.median, ratio.low, ratio.high)

    def difference(
        self, left: PointData | None, right: PointData | None, metric: str
    ) -> Value | str:
        """A metric of one point less that of another, in times of the emulated platform."""
        runs = self._runs(metric, left, right)
        if isinstance(runs, str):
            return runs
        assert left is not None
        figures = self.value(left, metric)
        assert isinstance(figures, Value)
        raw = left["metrics"][metric]["median"]
        scale = figures.y / raw if raw else 1.0
        median = median_of(runs[0]) - median_of(runs[1])
        low, high = interval_of(run_medians(runs[0], 1) - run_medians(runs[1], 2), median)
        return Value(median * scale, low * scale, high * scale)

    def _runs(
        self, metric: str, one: PointData | None, other: PointData | None
    ) -> list[list[Samples]] | str:
        """The samples of two points by run, of one state of the CPUs where they have one."""
        for point in (one, other):
            found = self.value(point, metric)
            if isinstance(found, str):
                return found
        assert one is not None
        assert other is not None
        metrics = [point["metrics"][metric] for point in (one, other)]
        if not all(found["samples"] for found in metrics):
            return "no samples"
        state = common_state(metric, one, other)
        if state is None and any("state" in found for found in metrics):
            self.notes[
                "some ratios or differences compare runs with the CPUs at different distances"
            ] = None
        return [runs_of(found, state) for found in metrics]


def unit_at_axis(metric: str) -> str:
    """The unit of a metric, as it stands at an axis."""
    unit = METRICS[metric].unit if metric in METRICS else ""
    return _UNITS.get(unit, unit)


def metric_title(metric: str) -> str:
    """What a metric is called."""
    return METRICS[metric].title if metric in METRICS else metric.replace("_", " ").capitalize()


def metric_label(metric: str) -> str:
    """A metric at an axis: what it is, its unit, and which way is better."""
    words = titled(metric_title(metric), unit_at_axis(metric))
    better = METRICS[metric].better if metric in METRICS else ""
    return f"{words}\n({better} is better)" if better else words
