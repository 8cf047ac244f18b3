"""What must come out of a scenario, as data: evaluated from a result and printed.

A verdict is computed: `as expected` when the 95 % interval lies on the expected side,
`not as expected` when it lies on the other, `inconclusive` when it covers the border,
`not measurable here` when a figure is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from shrimpmx.measure.statistics import Samples, Summary, ratio_of_medians

AS_EXPECTED, OPPOSITE = "as expected", "not as expected"
INCONCLUSIVE, NOT_HERE = "inconclusive", "not measurable here"
# The worst of several verdicts is the one that is shown.
_ORDER = (AS_EXPECTED, INCONCLUSIVE, NOT_HERE, OPPOSITE)

Place = dict[str, Any]
PointData = Mapping[str, Any]


class _Expectation(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Ratio(_Expectation):
    """The median of `metric` at `of` divided by the one at `to` lies within bounds.

    `of` and `to` give values of some axes; for the other axes every value is tried.
    """

    text: str
    metric: str
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

    text: str
    metric: str
    of: Place
    one: Place
    other: Place
    tolerance: float = Field(0.25, ge=0, le=1)
    kind: Literal["between"] = "between"

    def axes(self) -> set[str]:
        """The axes that the expectation names."""
        return {*self.of, *self.one, *self.other}


Expectation = Ratio | Between


@dataclass(frozen=True)
class Verdict:
    """An expectation's verdict and the sentence that goes with it."""

    verdict: str
    text: str
    detail: str


def matching(points: Iterable[PointData], place: Place) -> list[PointData]:
    """The points whose parameters have the values of `place`."""
    return [p for p in points if all(p["params"].get(k) == v for k, v in place.items())]


def samples_of(point: PointData, metric: str, state: str | None = None) -> Samples | str:
    """A metric's samples of a point, or the reason why there are none.

    `state` restricts them to repeats whose cache-line probe gave that state.
    """
    found = point["metrics"].get(metric)
    if found is None:
        return f"{metric} was not measured"
    if "unavailable" in found:
        return str(found["unavailable"])
    samples = np.asarray(found["samples"], dtype=np.float64)
    repeats = found.get("repeats")
    if state is None or not repeats:
        return samples
    kept = np.concatenate([np.full(part["count"], part["state"] == state) for part in repeats])
    return samples[kept] if kept.any() else f"no repeat was {state}"


def common_state(*points: PointData) -> str | None:
    """The distance state that all the points have repeats of; None if there is none."""
    shared = set.intersection(*(set(point.get("states", [])) for point in points))
    for state in ("near", "far"):
        if state in shared:
            return state
    return None


def evaluate(expectation: Expectation, points: Sequence[PointData], seed: int = 1) -> Verdict:
    """Compute the verdict of one expectation on the points of a result."""
    if isinstance(expectation, Ratio):
        verdicts = [_ratio(expectation, *pair, seed) for pair in _pairs(expectation, points)]
    else:
        verdicts = [_between(expectation, *three) for three in _threes(expectation, points)]
    if not verdicts:
        return Verdict(NOT_HERE, expectation.text, "the points it compares were not run")
    return max(verdicts, key=lambda verdict: _ORDER.index(verdict.verdict))


def _counterpart(points: Sequence[PointData], point: PointData, place: Place) -> PointData | None:
    found = matching(points, {**point["params"], **place})
    return found[0] if found else None


def _pairs(expected: Ratio, points: Sequence[PointData]) -> Iterator[tuple[PointData, PointData]]:
    for point in matching(points, expected.of):
        other = _counterpart(points, point, expected.to)
        if other is not None:
            yield point, other


def _threes(
    expected: Between, points: Sequence[PointData]
) -> Iterator[tuple[PointData, PointData, PointData]]:
    for point in matching(points, expected.of):
        one = _counterpart(points, point, expected.one)
        other = _counterpart(points, point, expected.other)
        if one is not None and other is not None:
            yield point, one, other


def _ratio(expected: Ratio, over: PointData, under: PointData, seed: int) -> Verdict:
    state = common_state(over, under)
    above = samples_of(over, expected.metric, state)
    below = samples_of(under, expected.metric, state)
    if isinstance(above, str) or isinstance(below, str):
        reason = above if isinstance(above, str) else str(below)
        return Verdict(NOT_HERE, expected.text, reason)
    if float(np.median(below)) <= 0:
        return Verdict(NOT_HERE, expected.text, f"{expected.metric} is 0 at {_words(under, over)}")
    ratio = ratio_of_medians(above, below, seed)
    return Verdict(_side(expected, ratio), expected.text, _ratio_words(expected, ratio, state))


def _side(expected: Ratio, ratio: Summary) -> str:
    low = expected.at_least if expected.at_least is not None else 0.0
    high = expected.at_most if expected.at_most is not None else float("inf")
    if low <= ratio.low and ratio.high <= high:
        return AS_EXPECTED
    return OPPOSITE if ratio.high < low or ratio.low > high else INCONCLUSIVE


def _ratio_words(expected: Ratio, ratio: Summary, state: str | None) -> str:
    wanted = []
    if expected.at_least is not None:
        wanted.append(f"at least {expected.at_least:g}")
    if expected.at_most is not None:
        wanted.append(f"at most {expected.at_most:g}")
    paired = f", CPUs {state}" if state else ""
    return (
        f"ratio {ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f}{paired}), "
        f"expected {' and '.join(wanted)}"
    )


def _between(expected: Between, of: PointData, one: PointData, other: PointData) -> Verdict:
    state = common_state(of, one, other)
    figures = []
    for point in (of, one, other):
        samples = samples_of(point, expected.metric, state)
        if isinstance(samples, str):
            return Verdict(NOT_HERE, expected.text, samples)
        figures.append(float(np.median(samples)))
    low, high = sorted(figures[1:])
    inside = low * (1 - expected.tolerance) <= figures[0] <= high * (1 + expected.tolerance)
    return Verdict(
        AS_EXPECTED if inside else OPPOSITE,
        expected.text,
        f"{figures[0]:.4g} at {_words(of, one)}, expected within {expected.tolerance:.0%} of "
        f"{low:.4g} to {high:.4g}",
    )


def _words(point: PointData, other: PointData) -> str:
    """What tells a point from another one that it is compared with, and its size or delay."""
    shown = {
        name: value
        for name, value in point["params"].items()
        if other["params"].get(name) != value or name in ("size_bytes", "delay_us", "mode")
    }
    return ", ".join(f"{name} {value}" for name, value in shown.items())
