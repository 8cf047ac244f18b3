"""Two results beside each other: at each point that both have, by what factor a metric changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shrimpmx.results.expectation import common_state, shown_runs
from shrimpmx.results.expectation_kinds import is_time
from shrimpmx.results.metrics import METRICS
from shrimpmx.results.runs import steered_words
from shrimpmx.results.sameness import differences
from shrimpmx.results.statistics import Samples, Summary, ratio_of_medians, summarise_runs
from shrimpmx.results.words import is_simulated

# Runs of a point that both results need. Two sets of runs of one distribution then differ by
# chance, beyond the interval of their ratio, in 3 of 100 cases; with three runs in 10 (docs/
# results.md, "Two results beside each other").
COMPARED_RUNS = 5

FASTER, SLOWER = "faster", "slower"
MORE, FEWER = "more", "fewer"
SAME = "no difference"
UNCERTAIN = "inconclusive"
NOT_COMPARABLE = "not comparable"
CHANGES = (FASTER, SLOWER, MORE, FEWER)
VERDICTS = (*CHANGES, SAME, UNCERTAIN, NOT_COMPARABLE)

Document = Mapping[str, Any]
PointData = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """What became of one metric at one point. `first` and `second` are the figures of the two
    results, `ratio` is the second by the first; they are None where there are none, and `reason`
    says why, or why the verdict is none.
    """

    verdict: str
    first: Summary | None = None
    second: Summary | None = None
    ratio: Summary | None = None
    reason: str = ""


@dataclass(frozen=True)
class Comparison:
    """Points that both results have, by their parameters, each with the changes of its metrics.

    `settings` are the parameters that have one value in each result, and another one in the other:
    (name, first, second). `conditions` says in words how machines and versions differ. `alone`
    counts the points of each result that the other one lacks.
    """

    points: Sequence[tuple[Mapping[str, Any], Mapping[str, Change]]]
    settings: Sequence[tuple[str, Any, Any]]
    conditions: Sequence[str]
    alone: tuple[int, int]

    def metrics(self) -> list[str]:
        """The metrics that are compared at any point, in their order."""
        return list(dict.fromkeys(name for _, changes in self.points for name in changes))

    def verdicts(self) -> Iterator[str]:
        """The verdict on each metric of each point."""
        return (change.verdict for _, changes in self.points for change in changes.values())


def compare(
    first: Document,
    second: Document,
    metrics: Sequence[str] = (),
    least: float = 0.0,
    seed: int = 1,
) -> Comparison:
    """What changed from one result to the other, of `metrics`, or of all that both measured.

    A change by a share of less than `least` counts as none. Of simulated figures that are the same
    in all runs of either result two runs are enough.
    """
    exact = is_simulated(first) and is_simulated(second)
    settings = _other_settings(first["points"], second["points"])
    apart = {name for name, _, _ in settings}
    others = {_key(point, apart): point for point in second["points"]}
    pairs = [
        (point, others[key]) for point in first["points"] if (key := _key(point, apart)) in others
    ]
    compared = []
    for one, other in pairs:
        names = metrics or [
            name
            for name, metric in one["metrics"].items()
            if _has_samples(metric) and _has_samples(other["metrics"].get(name, {}))
        ]
        place = {name: value for name, value in one["params"].items() if name not in apart}
        changes = {name: _change(name, one, other, least, seed, exact) for name in names}
        compared.append((place, changes))
    conditions = differences(first["environment"], second["environment"])
    alone = (len(first["points"]) - len(pairs), len(second["points"]) - len(pairs))
    return Comparison(compared, settings, conditions, alone)


def _has_samples(metric: Mapping[str, Any]) -> bool:
    return bool(metric.get("samples"))


def _other_settings(
    first: Sequence[PointData], second: Sequence[PointData]
) -> list[tuple[str, Any, Any]]:
    """Parameters with one value in each result that differ between them; None: not told."""
    names = dict.fromkeys(name for point in (*first, *second) for name in point["params"])
    found = []
    for name in names:
        one, other = ({_hashable(p["params"].get(name)) for p in some} for some in (first, second))
        if len(one) == len(other) == 1 and one != other:
            found.append((name, first[0]["params"].get(name), second[0]["params"].get(name)))
    return found


def _key(point: PointData, apart: set[str]) -> tuple[tuple[str, Any], ...]:
    params = point["params"]
    return tuple(sorted((n, _hashable(v)) for n, v in params.items() if n not in apart))


def _hashable(value: Any) -> str:
    # True and 1 are the same key of a dict, and other values of a parameter.
    return repr(value)


def _change(
    name: str, one: PointData, other: PointData, least: float, seed: int, exact: bool
) -> Change:
    """The change of a metric between two points, or why it cannot be told. `exact`: nothing varies
    where runs do not.
    """
    for point in (one, other):
        if reason := _absent(name, point):
            return Change(NOT_COMPARABLE, reason=reason)
    state = common_state(name, one, other) if is_time(name) else None
    if is_time(name) and state is None:
        reason = "no runs with the CPUs at one distance"
        return Change(NOT_COMPARABLE, reason=reason)
    before, after = (shown_runs(point["metrics"][name], state) for point in (one, other))
    first, second = summarise_runs(before, seed), summarise_runs(after, seed + 1)
    settled = exact and _are_equal(before) and _are_equal(after)
    too_few = "" if settled else _too_few(min(len(before), len(after)))
    if first.median <= 0 or second.median < 0:
        return _from_zero(name, first, second, too_few)
    ratio = ratio_of_medians(after, before, seed)
    if too_few:
        return Change(UNCERTAIN, first, second, ratio, too_few)
    return Change(_verdict(name, ratio, least), first, second, ratio)


def _are_equal(runs: Sequence[Samples]) -> bool:
    """Whether there are several runs, all of one median."""
    return len(runs) > 1 and len({float(np.median(run)) for run in runs}) == 1


def _absent(name: str, point: PointData) -> str:
    """Why a point has no figure of a metric; '' if it has."""
    metric = point["metrics"].get(name)
    if metric is None:
        return f"{name} was not measured"
    if not _has_samples(metric):
        return str(metric.get("unavailable", f"{name} has no samples"))
    steered = steered_words(point.get("steered", ()))
    return steered[0] if steered else ""


def _from_zero(name: str, first: Summary, second: Summary, too_few: str) -> Change:
    """The change of a figure that has no ratio, since the first one is none or negative."""
    if too_few:
        return Change(UNCERTAIN, first, second, reason=too_few)
    if first.low <= second.high and second.low <= first.high:
        return Change(SAME, first, second)
    return Change(_direction(name, second.median > first.median), first, second)


def _too_few(runs: int) -> str:
    """That there are too few runs for a verdict; "" if there are not."""
    if runs >= COMPARED_RUNS:
        return ""
    few = f"{runs} run{'s' if runs != 1 else ''} of {COMPARED_RUNS}"
    return f"{few}: shrimpmx run --set repeats={COMPARED_RUNS}"


def _verdict(name: str, ratio: Summary, least: float) -> str:
    if ratio.low > 1 + least:
        return _direction(name, True)
    if ratio.high < 1 / (1 + least):
        return _direction(name, False)
    return SAME


def _direction(name: str, grew: bool) -> str:
    """What a figure that grew, or shrank, has become."""
    if not is_time(name) or name not in METRICS or not METRICS[name].better:
        return MORE if grew else FEWER
    return SLOWER if grew == (METRICS[name].better == "lower") else FASTER
