"""What must come out of a scenario, as data: evaluated from a result and printed.

A verdict is computed: `as expected` when the 95 % interval lies on the expected side,
`not as expected` when it lies on the other, `inconclusive` when it covers the border or
when there is too little to compare, `not measurable here` when a figure is missing or the
placement does not allow it, `not run` when settings leave its points out. Times are compared
within one state of the CPUs. Exact figures have no interval, and one run of them is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shrimpmx.results.cache_metrics import CACHE_METRICS
from shrimpmx.results.expectation_kinds import (
    INCONCLUSIVE,
    NOT_HERE,
    NOT_RUN,
    Bound,
    Equals,
    Expectation,
    Place,
    Verdict,
    is_time,
)
from shrimpmx.results.judging import judged, worst
from shrimpmx.results.metric import shown_figures
from shrimpmx.results.runs import (
    ANY,
    DISTANCES,
    NORMAL_PRIORITY,
    ONE_CPU,
    OVERSUBSCRIBED,
    is_exact,
    runs_of,
    steered_words,
)
from shrimpmx.results.statistics import RUNS_LEAST, Samples
from shrimpmx.results.words import place_words, values_words

# Samples of a time from which fewer than RUNS_LEAST runs are judged: their interval covers the
# scatter within a run, if not from run to run (ours).
SAMPLES_MANY = 50
# Runs of a point that a claim is judged by, at least. From the least to the greatest of six medians
# is an interval that misses the true one in 1 of 32 cases; of three medians, in 1 of 4.
CLAIM_RUNS = 6

# What it takes where such a limit keeps a point from being judged.
_NEEDED = {
    ONE_CPU: "more CPUs",
    OVERSUBSCRIBED: "more CPUs",
    NORMAL_PRIORITY: "real-time priority",
}

PointData = Mapping[str, Any]
Group = tuple[PointData, ...]


def matching(points: Iterable[PointData], place: Place) -> list[PointData]:
    """The points whose parameters have the values of `place`."""
    return [p for p in points if all(p["params"].get(k) == v for k, v in place.items())]


def common_state(metric: str, *points: PointData, undisturbed: bool = False) -> str | None:
    """The distance that all the points have runs of, the one with most; None if there is none."""
    counts = {
        state: min(
            len(runs_of(point["metrics"][metric], state, undisturbed=undisturbed))
            for point in points
        )
        for state in DISTANCES
    }
    best = max(DISTANCES, key=lambda state: counts[state])
    return best if counts[best] else None


def evaluate(
    expectation: Expectation,
    points: Sequence[PointData],
    seed: int = 1,
    axes: Sequence[str] = (),
    cpus: int | None = None,
    *,
    claim: bool = False,
) -> Verdict:
    """Compute the verdict of one expectation on the points of a result.

    `axes` are those of the sweep, of which the verdict says what it covers; `cpus` are those that
    the runs had, None: as many as they needed. A `claim` of a paper asks for CLAIM_RUNS runs of
    each point that nothing disturbed from outside.
    """
    if lacking := lacking_cpus(expectation, cpus):
        return lacking
    groups = list(compared_points(expectation, points))
    if not groups:
        why = "settings, or an interruption, left out points that it compares"
        return Verdict(NOT_RUN, expectation.text, why)
    verdicts = [_judged(expectation, group, seed, claim) for group in groups]
    shown = worst(verdicts)
    where = _shown_words(groups, verdicts, shown)
    return replace(
        shown,
        detail=shown.detail + where,
        scope=_scope(groups, points, axes),
        cases=tuple(_cases(groups, verdicts)),
    )


def _cases(groups: Sequence[Group], verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
    """Each verdict, or those on the pairs of its order, with the place that it is about."""
    for group, verdict in zip(groups, verdicts, strict=True):
        place = _place_words(group, groups)
        for each in verdict.cases or ([verdict] if len(groups) > 1 else ()):
            yield replace(each, detail=f"{each.detail}; at {place}" if place else each.detail)


def lacking_cpus(expectation: Expectation, cpus: int | None) -> Verdict | None:
    """The verdict where so many CPUs are too few to judge it; None are as many as needed."""
    if cpus is None or cpus >= expectation.cpus:
        return None
    detail = too_few_cpus(expectation.cpus, cpus)
    return Verdict(NOT_HERE, expectation.text, detail, needs=f"{expectation.cpus} CPUs")


def too_few_cpus(needed: int, cpus: int) -> str:
    """Why what needs so many CPUs cannot be measured with fewer."""
    return f"needs {needed} CPUs, and this process may use {cpus}"


def _scope(groups: Sequence[Group], points: Sequence[PointData], axes: Sequence[str]) -> str:
    """The part of the sweep that was judged: each axis but those along which it compares."""
    words = []
    for axis in axes:
        compared = any(len(_values(group, axis)) > 1 for group in groups)
        if not compared:
            covered = _values([group[0] for group in groups], axis)
            words.append(values_words(axis, covered, _values(points, axis)))
    return ", ".join(words)


def _values(points: Iterable[PointData], axis: str) -> list[Any]:
    """The values that an axis takes, in order of appearance."""
    found: list[Any] = []
    for point in points:
        if axis in point["params"] and point["params"][axis] not in found:
            found.append(point["params"][axis])
    return found


def compared_points(expected: Expectation, points: Sequence[PointData]) -> Iterator[Group]:
    """Each point that the expectation is about, with those that it is compared with."""
    about, *others = expected.places()
    for point in matching(points, about):
        found = [matching(points, {**point["params"], **place}) for place in others]
        if all(found):
            yield (point, *(there[0] for there in found))


def _judged(expected: Expectation, group: Group, seed: int, claim: bool) -> Verdict:
    """The verdict on one group; what it cannot be judged by is told first."""
    compared = _compared(expected, group, seed, claim)
    if isinstance(compared, Verdict):
        return compared
    runs, state = compared
    where = f"; CPUs {state}" if state not in (None, ANY) else ""
    return judged(expected, runs, where, seed)


def _compared(
    expected: Expectation, group: Group, seed: int, claim: bool
) -> tuple[list[list[Samples]], str | None] | Verdict:
    """The samples to compare, by point and run, and their common state; or why there is none."""
    for absent in (_absent(expected, point) for point in group):
        if absent is not None:
            return absent
    calm = claim and not expected.exact
    state = None
    if is_time(expected.metric):
        seen = common_state(expected.metric, *group)
        if seen is None:
            return Verdict(INCONCLUSIVE, expected.text, _apart(group), undecided=True)
        # Where only disturbed runs share a state, there are too few of the others in it.
        state = common_state(expected.metric, *group, undisturbed=calm) or seen
    figures = [point["metrics"][expected.metric] for point in group]
    runs_in = shown_runs if isinstance(expected, Equals | Bound) else figure_runs
    runs = [runs_in(metric, state, calm) for metric in figures]
    varying = [part for part, of in zip(runs, figures, strict=True) if not is_exact(of)]
    if not varying:
        return runs, state
    fewest = min(varying, key=len)
    least = CLAIM_RUNS if claim else RUNS_LEAST
    samples = sum(run.size for run in fewest)
    many = is_time(expected.metric) and samples >= SAMPLES_MANY and not claim
    if fewest and (len(fewest) >= least or expected.exact or many):
        return runs, state
    disturbed = calm and min(len(shown_runs(metric, state)) for metric in figures) >= least
    why = _too_few(len(fewest), state, claim, disturbed=disturbed)
    if not fewest:
        return Verdict(INCONCLUSIVE, expected.text, why, undecided=True)
    # The figures are there all the same.
    shown = judged(expected, runs, "", seed)
    return replace(shown, verdict=INCONCLUSIVE, detail=why, undecided=True, cases=())


def _absent(expected: Expectation, point: PointData) -> Verdict | None:
    """Why a point has no figures to be judged; None if it has."""
    found = point["metrics"].get(expected.metric)
    detail, needs = "", ""
    if found is None:
        detail = f"{expected.metric} was not measured"
    elif "unavailable" in found:
        detail = found["unavailable"]
        needs = "cache counters" if expected.metric in CACHE_METRICS else ""
    elif np.size(found["samples"]) == 0:
        detail = f"{expected.metric} has no samples"
    elif limits := _limits(expected, point):
        detail, needs = limits[0], _NEEDED.get(limits[0], "")
    return Verdict(NOT_HERE, expected.text, detail, needs=needs) if detail else None


def shown_runs(metric: Mapping[str, Any], state: str | None, calm: bool = False) -> list[Samples]:
    """The runs of a metric, in times of the emulated platform where there is one; `calm`: of those
    that nothing disturbed.
    """
    scale = metric.get("scaled", {}).get("scale", 1.0)
    return [run * scale for run in runs_of(metric, state, undisturbed=calm)]


def figure_runs(metric: Mapping[str, Any], state: str | None, calm: bool = False) -> list[Samples]:
    """The same, to compare medians: of an exact figure, which has no scatter, just that."""
    if not is_exact(metric):
        return shown_runs(metric, state, calm)
    return [np.array([shown_figures(metric)["median"]], dtype=np.float64)]


def _limits(expected: Expectation, point: PointData) -> list[str]:
    """What keeps a point from being judged here. With one CPU counts change as well: a burst
    is over before its handler runs; and where interrupts were steered nothing is as declared.
    Where only one process has work at a time none has to wait for another's CPU.
    """
    steered = steered_words(point.get("steered", ()))
    if steered or expected.exact or expected.serial:
        return steered
    limits: list[str] = point.get("limits", [])
    return limits if is_time(expected.metric) else [x for x in limits if x == ONE_CPU]


def _apart(group: Group) -> str:
    seen = " against ".join(
        "/".join(sorted(set(point.get("states", ["unknown"])))) for point in group
    )
    return f"no runs with the CPUs at one distance ({seen}): raise repeats"


def _too_few(runs: int, state: str | None, claim: bool, *, disturbed: bool) -> str:
    """`disturbed`: without that there were enough."""
    while_state = f" with the CPUs {state}" if state not in (None, ANY) else ""
    alone = " that nothing disturbed" if claim else ""
    more = f"--set repeats={CLAIM_RUNS if claim else RUNS_LEAST + 2}"
    cure = "run it again while nothing else takes the CPUs" if disturbed else more
    return f"only {runs} run{'s' if runs != 1 else ''}{while_state}{alone}: {cure}"


def _shown_words(groups: Sequence[Group], verdicts: Sequence[Verdict], shown: Verdict) -> str:
    """Where the verdict shown comes from, and whether the others say the same."""
    place = _place_words(groups[verdicts.index(shown)], groups)
    if not place:
        return ""
    if all(verdict.detail == shown.detail for verdict in verdicts):
        return f"; the same at all {len(groups)} points"
    if all(verdict.verdict == shown.verdict for verdict in verdicts):
        agree = f"{len(groups)} points that agree{_span_words(verdicts)}"
        return f"; shown: {place}, one of {agree}"
    return f"; at {place}"


def _span_words(verdicts: Sequence[Verdict]) -> str:
    """From where to where what they judge lies, if that is sure."""
    found = [each.measured for each in verdicts if each.verdict != INCONCLUSIVE]
    measured = [value for value in found if value is not None]
    if not measured:
        return ""
    low, high = f"{min(measured):.4g}", f"{max(measured):.4g}"
    return "" if low == high else f", {low} to {high}"


def _place_words(group: Group, groups: Sequence[Group]) -> str:
    """Where among `groups` this one stands: the parameters that differ between them."""
    mine = group[0]["params"]
    differ = [
        place_words(name, value)
        for name, value in mine.items()
        if any(other[0]["params"].get(name) != value for other in groups)
    ]
    return ", ".join(differ)
