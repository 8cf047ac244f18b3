"""What came out of a paper's effect: its size, its direction, less, none, or the opposite.

A figure becomes an effect, signed and 0 without any: by how much the greater of two figures exceeds
the smaller for a ratio, the figure itself for a difference and a count. Divided by the paper's it
is a share. The strongest word that the whole 95 % interval allows is the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shrimpmx.results.expectation_kinds import (
    AS_EXPECTED,
    INCONCLUSIVE,
    NOT_HERE,
    NOT_RUN,
    OPPOSITE,
    Between,
    Bound,
    Difference,
    Equals,
    Expectation,
    Growth,
    Near,
    Order,
    Ratio,
    Verdict,
    Within,
)
from shrimpmx.results.judging import NO_DIFFERENCE
from shrimpmx.results.statistics import RATIO_MOST

SIZE, DIRECTION, TRACE, NO_EFFECT = "size", "direction", "trace", "no effect"
DIFFERS, MIXED, REVERSED, NEEDS = "differs", "mixed", "reversed", "needs"
# From what is as in the paper to what is opposite to it.
RESULTS = (
    *(SIZE, DIRECTION, NOT_RUN, NEEDS, MIXED, TRACE, NO_EFFECT),
    *(INCONCLUSIVE, DIFFERS, REVERSED),
)
# Those that bear the paper out, and those that say nothing of it.
GOOD, UNJUDGED = (SIZE, DIRECTION), (NOT_RUN, NEEDS)
# An effect has the paper's size if it is at most so many times larger or smaller, and its direction
# from this share of it on; a count below that share of the paper's is none (ours).
SAME_SIZE, LEAST_SHARE, NO_COUNT = 2.0, 0.25, 0.01
_ABOVE_ONE, _INFINITE = math.nextafter(1, 2), math.inf


class Came(NamedTuple):
    """What came out, and by which share of the paper's effect: None where the paper gives no size,
    or nothing was measured.
    """

    result: str
    share: float | None = None


@dataclass(frozen=True)
class _Scale:
    """How a figure becomes an `effect`, and where it has the paper's size: from `low` to `high`.

    `sign` is that of the paper's effect, 0 where it finds none or sets a limit. `paper` is that
    effect, None where there is a direction only. An effect of up to `least` is none.
    """

    effect: Callable[[float], float]
    low: float
    high: float
    sign: int
    paper: float | None
    least: float


def excess(ratio: float) -> float:
    """By how much the greater of two figures exceeds the smaller; negative for a ratio below 1."""
    return ratio - 1 if ratio >= 1 else 1 - 1 / max(ratio, 1 / RATIO_MOST)


def sized(paper: float) -> tuple[float, float]:
    """From where to where a ratio has the size of the paper's."""
    size = abs(excess(paper))
    least, most = 1 + size / SAME_SIZE, 1 + size * SAME_SIZE
    return (least, most) if paper > 1 else (1 / most, 1 / least)


def came_of(expected: Expectation, paper: Sequence[float], verdict: Verdict) -> list[Came]:
    """What came out in each case of a verdict; `paper` are the paper's figures, as a Statistic has
    them.
    """
    return [_came(expected, paper, case) for case in verdict.cases or (verdict,)]


def total(results: Iterable[str]) -> tuple[str, int, int]:
    """What several results have in common; how many of those that were judged bear the paper out,
    and how many these are. There must be one at least.
    """
    every = list(results)
    judged = [each for each in every if each not in UNJUDGED]
    good = sum(each in GOOD for each in judged)
    found = {*judged}
    if len(found) <= 1:
        result = judged[0] if judged else every[0]
    elif found <= {*GOOD}:
        result = DIRECTION
    else:
        result = INCONCLUSIVE if found <= {*GOOD, INCONCLUSIVE} else MIXED
    return result, good, len(judged)


def _came(expected: Expectation, paper: Sequence[float], case: Verdict) -> Came:
    if case.verdict in (NOT_HERE, NOT_RUN):
        return Came(NEEDS if case.verdict == NOT_HERE else NOT_RUN)
    if case.measured is None:
        return Came(INCONCLUSIVE)
    came = _of_figure(expected, paper, case, case.measured)
    return Came(INCONCLUSIVE, came.share) if case.undecided else came


def _of_figure(
    expected: Expectation, paper: Sequence[float], case: Verdict, measured: float
) -> Came:
    if isinstance(expected, Between):
        return Came(_between(expected, case))
    if isinstance(expected, Equals):
        result = SIZE if case.verdict == AS_EXPECTED else DIFFERS
        return Came(result, measured / expected.value if expected.value else None)
    scale = _scale(expected, paper, case.pair, measured)
    low, high = case.ci95 or (measured, measured)
    if not scale.sign:
        return Came(_without_effect(scale, low, high))
    share = scale.effect(measured) / scale.paper if scale.paper else None
    return Came(_graded(scale, low, high), share)


def _scale(expected: Expectation, paper: Sequence[float], pair: int, measured: float) -> _Scale:
    figure = paper[0] if paper else None
    match expected:
        case Order():
            upper, lower, equal = list(expected.pairs())[pair]
            most = 1 + expected.tolerance
            if equal:
                return _of_ratio(1 / most, most, None)
            if not paper:
                return _of_ratio(_ABOVE_ONE, _INFINITE, None)
            ratio = paper[upper] / paper[lower]
            return _of_ratio(*sized(ratio), ratio)
        case Ratio() | Growth():
            return _of_ratio(*expected.bounds(), figure)
        case Difference():
            low, high = expected.bounds()
            sign = (low >= 0) - (high <= 0)
            return _Scale(float, low, high, sign, None, NO_DIFFERENCE)
        case Near():
            return _of_count(*expected.range(), expected.value, measured)
        case Bound() | Within():
            return _of_count(*expected.bounds(), figure, measured)
        case _:
            raise TypeError(f"{expected.kind} has no scale")


def _of_ratio(low: float, high: float, figure: float | None) -> _Scale:
    """`figure`: the paper's. Without one its words may give a border, such as "next to none"."""
    sign = (low > 1) - (high < 1)
    border = low if sign > 0 else high
    if figure is None and sign and abs(excess(border)) > 2 * NO_DIFFERENCE:
        figure = border
    elif figure is not None and sign:
        low = sized(figure)[0] if low == -_INFINITE else low
        high = sized(figure)[1] if high == _INFINITE else high
    paper = excess(figure) if figure is not None and sign else None
    least = NO_DIFFERENCE if paper is None else min(NO_DIFFERENCE, abs(paper) * LEAST_SHARE)
    return _Scale(excess, low, high, sign, paper, least)


def _of_count(low: float, high: float, figure: float | None, measured: float) -> _Scale:
    """A count of 0, or one that only may not be too large, is no effect of any size. Without a
    `figure` the paper's is the nearest one within the borders.
    """
    if low == -_INFINITE or high <= 0:
        return _Scale(float, low, high, 0, None, 0.0)
    if figure is None:
        figure = min(max(measured, low), high)
    elif high == _INFINITE:
        high = figure * SAME_SIZE
    return _Scale(float, low, high, 1, figure, figure * NO_COUNT)


def _without_effect(scale: _Scale, low: float, high: float) -> str:
    """The result where the paper has two figures about equal, or sets a limit: to ratios one is a
    direction.
    """
    is_side = scale.effect is excess and _INFINITE in (-scale.low, scale.high)
    if scale.low <= low and high <= scale.high:
        return DIRECTION if is_side else SIZE
    if high < scale.low or low > scale.high:
        return REVERSED if is_side else DIFFERS
    return INCONCLUSIVE


def _graded(scale: _Scale, low: float, high: float) -> str:
    """The result where the paper has an effect."""
    least, most = sorted(scale.sign * scale.effect(end) for end in (low, high))
    if -scale.least <= least and most <= scale.least:
        return NO_EFFECT
    if scale.low <= low and high <= scale.high:
        return SIZE if scale.paper else DIRECTION
    if scale.paper and least >= abs(scale.paper) * LEAST_SHARE:
        return DIRECTION
    if least > scale.least:
        return TRACE
    return REVERSED if most < -scale.least else INCONCLUSIVE


def _between(expected: Between, case: Verdict) -> str:
    """A place among two others is a direction from both; next to them there is none."""
    if case.verdict != OPPOSITE or case.ci95 is None:
        return DIRECTION if case.verdict == AS_EXPECTED else INCONCLUSIVE
    low, high = sorted(case.figures[1:3])
    nearly = 1 + expected.tolerance + NO_DIFFERENCE
    is_next = low / nearly <= case.ci95[0] and case.ci95[1] <= high * nearly
    return NO_EFFECT if is_next else REVERSED
