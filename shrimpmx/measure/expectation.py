"""What must come out of a scenario, as data: evaluated from a result and printed.

A verdict is computed: `as expected` when the 95 % interval lies on the expected side,
`not as expected` when it lies on the other, `inconclusive` when it covers the border or
when there is too little to compare, `not measurable here` when a figure is missing or the
placement does not allow it. Times are compared within one state of the CPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from shrimpmx.measure.metrics import METRICS
from shrimpmx.measure.runs import DISTANCES, ONE_CPU, runs_of
from shrimpmx.measure.statistics import (
    RUNS_LEAST,
    Samples,
    Summary,
    interval_of,
    median_of,
    ratio_of_medians,
    run_medians,
)
from shrimpmx.measure.words import place_words, values_words

AS_EXPECTED, OPPOSITE = "as expected", "not as expected"
INCONCLUSIVE, NOT_HERE = "inconclusive", "not measurable here"
# The worst of several verdicts is the one that is shown.
_ORDER = (AS_EXPECTED, INCONCLUSIVE, NOT_HERE, OPPOSITE)

# Samples of a time from which fewer than RUNS_LEAST runs are judged: their interval covers the
# scatter within a run, if not from run to run (ours).
SAMPLES_MANY = 50

Place = dict[str, Any]
PointData = Mapping[str, Any]
Group = tuple[PointData, ...]


class _Expectation(BaseModel):
    """`exact`: the figure follows from the protocol alone, so that one run is enough, on any
    number of CPUs; not for times.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    text: str
    metric: str
    exact: bool = False

    @model_validator(mode="after")
    def _check_exact(self) -> Self:
        if self.exact and _is_time(self.metric):
            raise ValueError(f"expectation {self.text!r} is exact, but {self.metric} is a time")
        return self


class Ratio(_Expectation):
    """The median of `metric` at `of` divided by the one at `to` lies within bounds.

    `of` and `to` give values of some axes; for the other axes every value is tried.
    """

    of: Place
    to: Place
    at_least: float | None = Field(None, gt=0)
    at_most: float | None = Field(None, gt=0)
    kind: Literal["ratio"] = "ratio"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError(f"expectation {self.text!r} needs at_least or at_most")
        return self

    def axes(self) -> set[str]:
        """The axes that the expectation names."""
        return {*self.of, *self.to}


class Between(_Expectation):
    """The median of `metric` at `of` lies between those at `one` and `other`.

    `tolerance` is the share by which it may lie outside: two strategies that do the same thing
    still differ by the noise of two runs.
    """

    of: Place
    one: Place
    other: Place
    tolerance: float = Field(0.25, ge=0, le=1)
    kind: Literal["between"] = "between"

    def axes(self) -> set[str]:
        """The axes that the expectation names."""
        return {*self.of, *self.one, *self.other}


class Equals(_Expectation):
    """`metric` at `of` is `value` in every sample: of each message, in each run."""

    of: Place
    value: float
    exact: bool = True
    kind: Literal["equals"] = "equals"

    def axes(self) -> set[str]:
        """The axes that the expectation names."""
        return {*self.of}


Expectation = Ratio | Between | Equals


@dataclass(frozen=True)
class Verdict:
    """An expectation's verdict and the sentence that goes with it; `scope`: what it covers."""

    verdict: str
    text: str
    detail: str
    scope: str = ""


def matching(points: Iterable[PointData], place: Place) -> list[PointData]:
    """The points whose parameters have the values of `place`."""
    return [p for p in points if all(p["params"].get(k) == v for k, v in place.items())]


def common_state(metric: str, *points: PointData) -> str | None:
    """The distance that all the points have runs of, the one with most; None if there is none."""
    counts = {
        state: min(len(runs_of(point["metrics"][metric], state)) for point in points)
        for state in DISTANCES
    }
    best = max(DISTANCES, key=lambda state: counts[state])
    return best if counts[best] else None


def evaluate(
    expectation: Expectation,
    points: Sequence[PointData],
    seed: int = 1,
    axes: Sequence[str] = (),
) -> Verdict:
    """Compute the verdict of one expectation on the points of a result.

    `axes` are those of the sweep, of which the verdict says what it covers.
    """
    groups = list(_groups(expectation, points))
    if not groups:
        return Verdict(NOT_HERE, expectation.text, "the points it compares were not run")
    verdicts = [_judged(expectation, group, groups, seed) for group in groups]
    worst = max(verdicts, key=lambda verdict: _ORDER.index(verdict.verdict))
    return replace(worst, scope=_scope(groups, points, axes))


def _scope(groups: Sequence[Group], points: Sequence[PointData], axes: Sequence[str]) -> str:
    """The part of the sweep that was judged: each axis but those along which it compares."""
    words = []
    for axis in axes:
        compared = any(len(_values(group, axis)) > 1 for group in groups)
        if not compared:
            judged = _values([group[0] for group in groups], axis)
            words.append(values_words(axis, judged, _values(points, axis)))
    return ", ".join(words)


def _values(points: Iterable[PointData], axis: str) -> list[Any]:
    """The values that an axis takes, in order of appearance."""
    found: list[Any] = []
    for point in points:
        if axis in point["params"] and point["params"][axis] not in found:
            found.append(point["params"][axis])
    return found


def _is_time(metric: str) -> bool:
    return metric not in METRICS or METRICS[metric].kind == "time"


def _groups(expected: Expectation, points: Sequence[PointData]) -> Iterator[Group]:
    """Each point that the expectation is about, with those that it is compared with."""
    places = _places(expected)
    for point in matching(points, expected.of):
        found = [matching(points, {**point["params"], **place}) for place in places]
        if all(found):
            yield (point, *(others[0] for others in found))


def _places(expected: Expectation) -> list[Place]:
    """Where the points lie that the one at `of` is compared with."""
    if isinstance(expected, Equals):
        return []
    return [expected.to] if isinstance(expected, Ratio) else [expected.one, expected.other]


def _judged(expected: Expectation, group: Group, groups: Sequence[Group], seed: int) -> Verdict:
    """The verdict on one group; what it cannot be judged by is told first."""
    where = _place_words(group, groups)
    compared = _compared(expected, group)
    if isinstance(compared, Verdict):
        return Verdict(compared.verdict, compared.text, compared.detail + where)
    runs, state = compared
    where = f"; CPUs {state}{where}" if state else where
    if isinstance(expected, Between):
        return _between(expected, runs, where, seed)
    if isinstance(expected, Equals):
        return _equals(expected, runs, where)
    if median_of(runs[1]) <= 0:
        divisor = f"{expected.metric} is 0 where it divides"
        return Verdict(NOT_HERE, expected.text, divisor + where)
    ratio = ratio_of_medians(runs[0], runs[1], seed)
    return Verdict(_side(expected, ratio), expected.text, _ratio_words(expected, ratio) + where)


def _compared(
    expected: Expectation, group: Group
) -> tuple[list[list[Samples]], str | None] | Verdict:
    """The samples to compare, by point and run, and their common state; or why there is none."""
    for point in group:
        found = point["metrics"].get(expected.metric)
        reason = f"{expected.metric} was not measured"
        if found is None or "unavailable" in found:
            return Verdict(NOT_HERE, expected.text, found["unavailable"] if found else reason)
        if np.size(found["samples"]) == 0:
            return Verdict(NOT_HERE, expected.text, f"{expected.metric} has no samples")
    limits = [limit for point in group for limit in _limits(expected, point)]
    if limits:
        return Verdict(NOT_HERE, expected.text, limits[0])
    state = None
    if _is_time(expected.metric):
        state = common_state(expected.metric, *group)
        if state is None:
            return Verdict(INCONCLUSIVE, expected.text, _apart(group))
    runs = [runs_of(point["metrics"][expected.metric], state) for point in group]
    fewest = min(runs, key=len)
    samples = sum(run.size for run in fewest)
    many = _is_time(expected.metric) and samples >= SAMPLES_MANY
    if len(fewest) < RUNS_LEAST and not expected.exact and not many:
        return Verdict(INCONCLUSIVE, expected.text, _too_few(len(fewest), state))
    return runs, state


def _limits(expected: Expectation, point: PointData) -> list[str]:
    """What keeps a point from being judged here. With one CPU counts change as well: a burst
    is over before its handler runs.
    """
    if expected.exact:
        return []
    limits: list[str] = point.get("limits", [])
    return limits if _is_time(expected.metric) else [x for x in limits if x == ONE_CPU]


def _apart(group: Group) -> str:
    seen = " against ".join("/".join(sorted(set(point["states"]))) for point in group)
    return f"no runs with the CPUs at one distance ({seen}): raise repeats"


def _too_few(runs: int, state: str | None) -> str:
    while_state = f" with the CPUs {state}" if state else ""
    return f"only {runs} run{'s' if runs > 1 else ''}{while_state}: --set repeats=5"


def _side(expected: Ratio, ratio: Summary) -> str:
    low = expected.at_least if expected.at_least is not None else 0.0
    high = expected.at_most if expected.at_most is not None else float("inf")
    if low <= ratio.low and ratio.high <= high:
        return AS_EXPECTED
    return OPPOSITE if ratio.high < low or ratio.low > high else INCONCLUSIVE


def _ratio_words(expected: Ratio, ratio: Summary) -> str:
    wanted = []
    if expected.at_least is not None:
        wanted.append(f"at least {expected.at_least:g}")
    if expected.at_most is not None:
        wanted.append(f"at most {expected.at_most:g}")
    return (
        f"ratio {ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f}), "
        f"expected {' and '.join(wanted)}"
    )


def _between(
    expected: Between, runs: Sequence[Sequence[Samples]], where: str, seed: int
) -> Verdict:
    """Bootstraps how far the figure lies above the lower border and below the upper one."""
    figures = np.array([median_of(part) for part in runs])
    resampled = np.array([run_medians(part, seed + i) for i, part in enumerate(runs)])
    low, high = _borders(figures, expected.tolerance)
    lows, highs = _borders(resampled, expected.tolerance)
    above = interval_of(resampled[0] - lows, float(figures[0] - low))
    below = interval_of(highs - resampled[0], float(high - figures[0]))
    verdict = INCONCLUSIVE
    if above[0] >= 0 and below[0] >= 0:
        verdict = AS_EXPECTED
    elif above[1] < 0 or below[1] < 0:
        verdict = OPPOSITE
    own = interval_of(resampled[0], float(figures[0]))
    return Verdict(
        verdict,
        expected.text,
        f"{figures[0]:.4g} ({own[0]:.4g} to {own[1]:.4g}), expected {low:.4g} to {high:.4g}{where}",
    )


def _equals(expected: Equals, runs: Sequence[Sequence[Samples]], where: str) -> Verdict:
    samples = np.concatenate(runs[0])
    others = sorted({float(value) for value in samples if value != expected.value})
    share = f"{np.count_nonzero(samples == expected.value)} of {samples.size}"
    found = f", others {', '.join(f'{value:g}' for value in others)}" if others else ""
    return Verdict(
        OPPOSITE if others else AS_EXPECTED,
        expected.text,
        f"{expected.value:g} in {share}{found}{where}",
    )


def _borders(figures: Samples, tolerance: float) -> tuple[Any, Any]:
    """The tolerated range between the second and the third row of `figures`."""
    ends = np.sort(figures[1:3], axis=0)
    return ends[0] * (1 - tolerance), ends[1] * (1 + tolerance)


def _place_words(group: Group, groups: Sequence[Group]) -> str:
    """Where among `groups` this one stands: the parameters that differ between them."""
    mine = group[0]["params"]
    differ = [
        place_words(name, value)
        for name, value in mine.items()
        if any(other[0]["params"].get(name) != value for other in groups)
    ]
    return f"; at {', '.join(differ)}" if differ else ""
