"""Two results beside each other: at each point that both have, by what factor a metric changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shrimpmx.results.environment import differences
from shrimpmx.results.expectation import common_state, figure_runs
from shrimpmx.results.expectation_kinds import is_time
from shrimpmx.results.metrics import METRICS, shown_figures
from shrimpmx.results.repeating import repeating_command
from shrimpmx.results.runs import ANY, is_exact, steered_words
from shrimpmx.results.statistics import Samples, Summary, ratio_of_medians, summarise_runs
from shrimpmx.results.words import hosts_words
from shrimpmx.settings.names import PARAMETER_NAMES
from shrimpmx.settings.platform import DRAW
from shrimpmx.settings.workload import PROGRAMS

# Runs of a point that both results need. Two sets of runs of one distribution then differ by
# chance, beyond the interval of their ratio, in 3 of 100 cases; with three runs in 10 (docs/
# results.md, "Two results side by side").
COMPARED_RUNS = 5

FASTER, SLOWER = "faster", "slower"
MORE, FEWER = "more", "fewer"
# Of exact figures: the same.
EQUAL = "equal"
SAME = "no difference"
UNCERTAIN = "inconclusive"
NOT_COMPARABLE = "not comparable"
CHANGES = (FASTER, SLOWER, MORE, FEWER)
VERDICTS = (*CHANGES, EQUAL, SAME, UNCERTAIN, NOT_COMPARABLE)

Document = Mapping[str, Any]
PointData = Mapping[str, Any]


TAKEN_AS_EXACT = (
    "a program ran once, and its figures count as exact; if it draws at random or reads a "
    "clock, run it more than once"
)


@dataclass(frozen=True)
class Change:
    """What became of one metric at one point. `first` and `second` are the figures of the two
    results, `ratio` is the second by the first; they are None where there are none, and `reason`
    says why, or why the verdict is none. `short` are the letters of results with too few runs.
    `draws`: of draws of the platforms' costs, how many keep the order of A and B, and how many
    there are; the intervals are then theirs, and else (0, 0).
    """

    verdict: str
    first: Summary | None = None
    second: Summary | None = None
    ratio: Summary | None = None
    reason: str = ""
    short: tuple[str, ...] = ()
    draws: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Comparison:
    """Points that both results have, by their parameters, each with the changes of its metrics.

    `settings` are the parameters that have one value in each result, and another one in the other:
    (name, first, second). `hosts` says whose times each result has, where that differs,
    `conditions` how machines and versions differ. `alone` counts the points of each result that
    the other one lacks. `repeating` are the commands that give enough runs to results with too few,
    by letter.
    """

    points: Sequence[tuple[Mapping[str, Any], Mapping[str, Change]]]
    settings: Sequence[tuple[str, Any, Any]]
    conditions: Sequence[str]
    alone: tuple[int, int]
    hosts: tuple[str, str] | None
    repeating: Mapping[str, str]

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

    A change by a share of less than `least` counts as none. Exact figures are equal or differ, by
    one run of each.
    """
    names = {
        name for each in (first, second) for point in each["points"] for name in point["params"]
    }
    ours, theirs = (with_defaults(each, names) for each in (first, second))
    settings = _other_settings(ours, theirs)
    apart = {name for name, _, _ in settings}
    others = {_key(point, apart): point for point in theirs}
    pairs = [(point, others[key]) for point in ours if (key := _key(point, apart)) in others]
    compared = []
    groups = _by_draws(pairs)
    for (one, other), *drawn in groups:
        common = metrics or [
            name
            for name, metric in one["metrics"].items()
            if _has_samples(metric)
            and _has_samples(other["metrics"].get(name, {}))
            and (name not in METRICS or METRICS[name].is_judged)
        ]
        left = {*apart, DRAW} if drawn else apart
        place = {name: value for name, value in one["params"].items() if name not in left}
        changes = {
            name: _under_draws(name, _change(name, one, other, least, seed), drawn, least)
            for name in common
        }
        compared.append((place, changes))
    conditions = differences(first["environment"], second["environment"])
    alone = (len(ours) - len(pairs), len(theirs) - len(pairs))
    hosts = hosts_words(first), hosts_words(second)
    return Comparison(
        compared,
        settings,
        conditions,
        alone,
        hosts if hosts[0] != hosts[1] else None,
        _repeating((first, second), compared, [group[0] for group in groups]),
    )


def _by_draws(
    pairs: Sequence[tuple[PointData, PointData]],
) -> list[list[tuple[PointData, PointData]]]:
    """Pairs that differ in the draw of the platforms' costs only, together: first that of the most
    probable costs, or what is there.
    """
    groups: dict[Any, list[tuple[PointData, PointData]]] = {}
    for pair in pairs:
        groups.setdefault(_key(pair[0], {DRAW}), []).append(pair)
    for group in groups.values():
        group.sort(key=lambda pair: int(pair[0]["params"].get(DRAW, 0)))
    return list(groups.values())


def _under_draws(
    name: str, change: Change, drawn: Sequence[tuple[PointData, PointData]], least: float
) -> Change:
    """The change at the most probable costs with the intervals of the same under draws; as it is
    without draws, or where it has no ratio.
    """
    figures = np.array(
        [
            [shown_figures(point["metrics"][name])["median"] for point in pair]
            for pair in drawn
            if all(_has_samples(point["metrics"].get(name, {})) for point in pair)
        ]
    )
    first, second, ratio = change.first, change.second, change.ratio
    if not figures.size or first is None or second is None or ratio is None:
        return change
    if (figures[:, 0] <= 0).any():
        return change
    ratios = figures[:, 1] / figures[:, 0]
    spread = _between(ratio, ratios)
    same = np.sign(ratios - 1) == np.sign(ratio.median - 1)
    if change.verdict == EQUAL and same.all():
        verdict = EQUAL
    elif (verdict := _verdict(name, spread, least)) == SAME and not same.all():
        verdict = UNCERTAIN
    return replace(
        change,
        verdict=verdict,
        first=_between(first, figures[:, 0]),
        second=_between(second, figures[:, 1]),
        ratio=spread,
        draws=(int(same.sum()), len(figures)),
    )


def _between(summary: Summary, values: Samples) -> Summary:
    """A figure with the interval that holds 95 % of its values under draws, and itself."""
    low, high = np.percentile([summary.median, *values], (2.5, 97.5))
    ends = min(float(low), summary.median), max(float(high), summary.median)
    return replace(summary, low=ends[0], high=ends[1], exact=False)


def _repeating(
    documents: Sequence[Document],
    compared: Sequence[tuple[Mapping[str, Any], Mapping[str, Change]]],
    pairs: Sequence[tuple[PointData, PointData]],
) -> dict[str, str]:
    """By letter, the command that gives enough runs to a result with too few of any point."""
    found: dict[str, str] = {}
    for (_, changes), pair in zip(compared, pairs, strict=True):
        short = {letter for change in changes.values() for letter in change.short}
        for letter, document, point in zip("AB", documents, pair, strict=True):
            if letter in short and letter not in found:
                # With so many already, they were of several states.
                made = len(point.get("states", ()))
                runs = COMPARED_RUNS if made < COMPARED_RUNS else 2 * made
                if command := repeating_command(document, runs):
                    found[letter] = command
    return found


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


def _change(name: str, one: PointData, other: PointData, least: float, seed: int) -> Change:
    """The change of a metric between two points, or why it cannot be told."""
    for point in (one, other):
        if reason := _absent(name, point):
            return Change(NOT_COMPARABLE, reason=reason)
    states = _states(name, one, other)
    if states is None:
        return Change(NOT_COMPARABLE, reason="no runs with the CPUs at one distance")
    metrics = [point["metrics"][name] for point in (one, other)]
    before, after = (figure_runs(*each) for each in zip(metrics, states, strict=True))
    first, second = (
        replace(summarise_runs(runs, seed + number), exact=is_exact(metric))
        for number, (runs, metric) in enumerate(zip((before, after), metrics, strict=True))
    )
    few = {
        letter: len(runs)
        for letter, runs, metric in zip("AB", (before, after), metrics, strict=True)
        if len(runs) < COMPARED_RUNS and not is_exact(metric)
    }
    ratio = None
    if first.median > 0 and second.median >= 0:
        ratio = ratio_of_medians(after, before, seed)
    if few:
        reason = f"{_counted(few)}; a verdict needs {COMPARED_RUNS}"
        return Change(UNCERTAIN, first, second, ratio, reason, tuple(few))
    if first.exact and second.exact and first.median == second.median:
        verdict = EQUAL
    else:
        verdict = _verdict(name, ratio, least) if ratio else _from_zero(name, first, second)
    taken = tuple(
        letter
        for letter, point, metric in zip("AB", (one, other), metrics, strict=True)
        if is_exact(metric)
        and len(metric["repeats"]) == 1
        and point["params"].get("workload") in PROGRAMS
    )
    return Change(verdict, first, second, ratio, TAKEN_AS_EXACT if taken else "", taken)


def _states(name: str, one: PointData, other: PointData) -> tuple[str | None, str | None] | None:
    """The distances of the CPUs of both points' runs to compare: one, unless it is no matter to
    either; None if there is none.
    """
    if not is_time(name):
        return None, None
    if common := common_state(name, one, other):
        return common, common
    first, second = common_state(name, one), common_state(name, other)
    return (first, second) if first and second and ANY in (first, second) else None


def _counted(few: Mapping[str, int]) -> str:
    """How many runs each of them has."""
    return " and ".join(
        f"{letter} has {count} run{'s' * (count != 1)} per point" for letter, count in few.items()
    )


def _absent(name: str, point: PointData) -> str:
    """Why a point has no figure of a metric; '' if it has."""
    metric = point["metrics"].get(name)
    if metric is None:
        return f"{name} was not measured"
    if not _has_samples(metric):
        return str(metric.get("unavailable", f"{name} has no samples"))
    steered = steered_words(point.get("steered", ()))
    return steered[0] if steered else ""


def _from_zero(name: str, first: Summary, second: Summary) -> str:
    """The change of a figure that has no ratio, since the first one is none or negative."""
    if first.low <= second.high and second.low <= first.high:
        return SAME
    return _direction(name, second.median > first.median)


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


# Behind a default that a platform may have replaced.
OF_PLATFORM = "unless the platform sets it"


def with_defaults(document: Mapping[str, Any], names: Iterable[str]) -> list[dict[str, Any]]:
    """The points of a result, with all of these parameters among their `params`."""
    names = list(names)
    return [
        {**point, "params": {**_defaults(document, point["params"], names), **point["params"]}}
        for point in document["points"]
    ]


def _defaults(
    document: Mapping[str, Any], given: Mapping[str, Any], names: Iterable[str]
) -> dict[str, Any]:
    """Of those names that are not `given`; none that the result does not know."""
    found = {}
    for name in names:
        group, field = PARAMETER_NAMES.get(name, ("", ""))
        kept = document.get("parameters", {}).get(group, {})
        if name in given or field not in kept or isinstance(kept[field], Mapping):
            continue
        is_own = name == "platform" or given.get("platform", "none") == "none"
        found[name] = kept[field] if is_own else f"{kept[field]} {OF_PLATFORM}"
    return found
