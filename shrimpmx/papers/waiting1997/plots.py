"""The waiting paper's figures, as panels of our results, and those of ours about the same.

Each takes a result and gives its panels, and how many stand side by side; or None if the axes
were changed so that the figure cannot be drawn from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shrimpmx.papers.waiting1997 import figures as paper
from shrimpmx.papers.waiting1997.tipping_point import tipping_point
from shrimpmx.results.expectation_kinds import Place
from shrimpmx.results.words import place_words, value_words
from shrimpmx.show.plot.chart import ONLY, Axis, Panel, Series, Value
from shrimpmx.show.plot.panels import (
    HERE,
    OWN_COSTS,
    Figure,
    axis_of,
    axis_words,
    metric_panel,
    note_missing,
    panel_title,
)
from shrimpmx.show.plot.reading import (
    NOT_RUN,
    Result,
    metric_label,
)

USER, SYSTEM = ("user time", 0), ("system time", 1)
PARTS = ("user_time", "system_time")
BLOCK_PARTS = ("block_user", "block_system")
REST = ("rest of the wall time: others run, or none", 7)
# Between two groups of places, in places.
GAP = 0.8


def fig2(result: Result) -> tuple[Sequence[Panel], int] | None:
    """Figure 2: round trip by the delay of messages, a line per strategy; then the other metrics.

    Side by side: the costs of the paper's machine, and this machine's own.
    """
    if not _varies(result, "wait", "delay_us") or "round_trip" not in result.metrics:
        return None
    costs = _costs(result)
    panels = [
        metric_panel(result, metric, "delay_us", ["wait"], place, _title(metric, place))
        for metric in result.metrics
        for place in costs
    ]
    # As in the paper, where what a strategy adds looks the same at each delay.
    return [replace(panel, log=False) for panel in panels], len(costs)


def fig3(result: Result) -> tuple[Sequence[Panel], int] | None:
    """Figure 3: wall time with its user and system part beside reschedules, for five pairs; then
    both by the number of pairs.
    """
    wanted = {"wall_time", "reschedules", *PARTS}
    if not _varies(result, "wait", "pairs") or not wanted <= set(result.metrics):
        return None
    panels = []
    for costs in _costs(result):
        place = {**costs, "pairs": paper.PAIRS}
        places = [{**place, "wait": wait} for wait in result.axes["wait"]]
        if any(map(result.find, places)):
            title = _title("reschedules", place)
            panels += [
                _stacked(result, WALL_TIME, "wall_time", axis_of(result, "wait"), places, place),
                metric_panel(result, "reschedules", "wait", (), place, title),
            ]
    for costs in _costs(result):
        if len([n for n in result.axes["pairs"] if result.find({**costs, "pairs": n})]) > 2:
            panels += [
                metric_panel(result, metric, "pairs", ["wait"], costs, _title(metric, costs))
                for metric in ("wall_time", "reschedules")
            ]
    return (panels, 2) if panels else None


def fig4(result: Result) -> tuple[Sequence[Panel], int] | None:
    """Figure 4: time per block beside CPU time per block, by company and strategy."""
    wanted = {"block_time", "block_cpu", *BLOCK_PARTS}
    if not _varies(result, "wait", "company") or not wanted <= set(result.metrics):
        return None
    axis = _grouped(result, "company", "wait")
    panels = []
    for costs in _costs(result):
        places = [{**costs, **inner} for inner in result.places(["company", "wait"])]
        panels += [
            _stacked(result, TIME, "block_time", axis, places, costs),
            _stacked(result, CPU_TIME, "block_cpu", axis, places, costs),
        ]
    return panels, 2


def competitive(result: Result) -> tuple[Sequence[Panel], int] | None:
    """Cost over the optimum by arrivals and strategy, with a line at twice the optimum."""
    if not _varies(result, "wait", "arrivals") or "competitive_ratio" not in result.metrics:
        return None
    panels = [
        metric_panel(result, metric, "arrivals", ["wait"], place, _title(metric, place), bars=True)
        for metric in result.metrics
        for place in _costs(result)
    ]
    first = panels[: len(_costs(result))]
    limited = [
        replace(panel, title=f"{panel.title}; the line is twice", baseline=paper.COMPETITIVE_MOST)
        for panel in first
    ]
    return [*limited, *panels[len(limited) :]], 1


def _varies(result: Result, *axes: str) -> bool:
    """Whether these are the axes, beside whose costs they are."""
    return set(result.axes) - {"platform"} == set(axes)


def _costs(result: Result) -> list[dict[str, Any]]:
    """The platforms of a result as places, the paper's machine first; one without an axis."""
    if not result.has("platform"):
        return [{}]
    values = [v for v in result.axes["platform"] if result.find({"platform": v})]
    return [{"platform": value} for value in sorted(values, key=lambda v: v != paper.PLATFORM)]


def _title(metric: str, place: Place) -> str:
    """A metric and where it was taken."""
    others = {axis: value for axis, value in place.items() if axis != "platform"}
    parts = [panel_title(metric, others)]
    if place.get("platform") == "none":
        parts.append(OWN_COSTS)
    elif "platform" in place:
        parts.append(place_words("platform", place["platform"]))
    return ", ".join(parts)


def _grouped(result: Result, outer: str, inner: str) -> Axis:
    """An axis with the values of `inner` for each of `outer`, which are groups."""
    words, positions, groups = [], [], []
    at = 0.0
    for value in result.axes[outer]:
        first = at
        for other in result.axes[inner]:
            words.append(value_words(inner, other))
            positions.append(at)
            at += 1.0
        groups.append((value_words(outer, value), (first + at - 1) / 2))
        at += GAP
    label = f"{axis_words(inner)}, by {axis_words(outer)}"
    return Axis(label, tuple(words), tuple(positions), groups=tuple(groups))


@dataclass(frozen=True)
class Split:
    """How a time is drawn as parts on each other: what they are called with their looks, from
    below; the metrics they follow from beside the time's own; and how.

    The last part has the interval of the whole, and starts where the others end.
    """

    parts: tuple[tuple[str, int], ...]
    metrics: tuple[str, ...]
    split: Callable[[Value, Sequence[float]], Sequence[float]]


TIME = Split(((HERE, ONLY),), (), lambda whole, used: ())
WALL_TIME = Split((USER, SYSTEM, REST), PARTS, lambda whole, used: used)
# The last part is what the whole has beside the others.
CPU_TIME = Split((USER, SYSTEM), BLOCK_PARTS, lambda whole, used: used[:1])


def _stacked(
    result: Result, how: Split, metric: str, axis: Axis, places: Sequence[Place], where: Place
) -> Panel:
    """A time at `places` as bars of its parts. What is missing becomes a note."""
    parts: list[dict[int, Value]] = [{} for _ in how.parts]
    missing: list[int] = []
    reasons: dict[str, dict[str, int]] = {}
    for index, place in enumerate(places):
        point = result.find(place)
        found = {name: result.value(point, name) for name in (metric, *how.metrics)}
        values = [value for value in found.values() if isinstance(value, Value)]
        if len(values) == len(found):
            used = how.split(values[0], [value.y for value in values[1:]])
            for part, value in zip(parts, _piled(values[0], used), strict=True):
                part[index] = value
        elif point is not None:
            missing.append(index)
            for name, reason in found.items():
                if isinstance(reason, str):
                    counts = reasons.setdefault(name, {})
                    counts[reason] = counts.get(reason, 0) + 1
    for name, counts in reasons.items():
        note_missing(result, name, counts)
    last = len(parts) - 1
    drawn = tuple(
        Series(label, values, style, missing=tuple(missing) if n == last else (), stack=metric)
        for n, ((label, style), values) in enumerate(zip(how.parts, parts, strict=True))
        if values
    )
    why = "; ".join(dict.fromkeys(reason for counts in reasons.values() for reason in counts))
    reason = "" if drawn else why or NOT_RUN
    return Panel(_title(metric, where), axis, metric_label(metric), drawn, reason=reason)


def _piled(whole: Value, used: Sequence[float]) -> list[Value]:
    """The parts of a whole, and what is left of it, with the interval of the whole."""
    rest = max(0.0, whole.y - sum(used))
    last = Value(rest, rest - (whole.y - whole.low), rest + (whole.high - whole.y))
    return [*(Value(part, part, part) for part in used), last]


FIGURES: dict[str, Figure] = {
    paper.FIG2: fig2,
    paper.FIG3: fig3,
    paper.FIG4: fig4,
    paper.COMPETITIVE: competitive,
    paper.TIPPING: tipping_point,
}
