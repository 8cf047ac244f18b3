"""How the samples of the places that an expectation compares decide about it, kind by kind.

`runs` are the samples by place and run, in the order of `Expectation.places`; `where` is added
to the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shrimpmx.results.expectation_kinds import (
    AS_EXPECTED,
    INCONCLUSIVE,
    OPPOSITE,
    ORDER_OF_VERDICTS,
    Between,
    Bound,
    Difference,
    Equals,
    Expectation,
    Growth,
    Near,
    Order,
    Place,
    Ratio,
    Verdict,
    Within,
)
from shrimpmx.results.metrics import METRICS
from shrimpmx.results.statistics import (
    RATIO_MOST,
    Samples,
    Summary,
    interval_of,
    median_of,
    ratio_decimals,
    ratio_of_medians,
    ratio_text,
    run_medians,
    summarise_runs,
)
from shrimpmx.results.words import value_words

Runs = Sequence[Sequence[Samples]]
RATIO_UNIT, SHARE_UNIT = "ratio", "share"
# Two figures whose ratio surely is within this share of 1 do not differ (ours), nor do two growths
# whose difference is within it of 0.
NO_DIFFERENCE = 0.01
COVERS_NONE = ", which covers no effect"
NO_OR_OPPOSITE = ", which is no effect or the opposite one"


def judged(expected: Expectation, runs: Runs, where: str, seed: int) -> Verdict:
    """The verdict on samples that can be compared."""
    match expected:
        case Ratio():
            return _ratio(expected, runs, where, seed)
        case Growth():
            return _growth(expected, runs, where, seed)
        case Difference():
            return _difference(expected, runs, where, seed)
        case Between():
            return _between(expected, runs, where, seed)
        case Equals():
            return _equals(expected, runs, where, seed)
        case Bound():
            return _bound(expected, runs, where)
        case Within():
            return _within(expected, runs, where, seed)
        case Near():
            return _near(expected, runs, where, seed)
        case Order():
            return _order(expected, runs, where, seed)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The first of the worst verdicts: what is certainly not as expected is worse than what is
    inconclusive.
    """
    return max(verdicts, key=lambda each: ORDER_OF_VERDICTS.index(each.verdict))


def _made(
    expected: Expectation,
    runs: Runs,
    verdict: str,
    detail: str,
    figure: Summary | None,
    unit: str | None = None,
) -> Verdict:
    known = METRICS.get(expected.metric)
    return Verdict(
        verdict,
        expected.text,
        detail,
        measured=figure.median if figure else None,
        ci95=[figure.low, figure.high] if figure else None,
        unit=(known.unit if known else "") if unit is None else unit,
        figures=[median_of(part) for part in runs],
    )


def _side(figure: Summary, low: float, high: float) -> str:
    """Where an interval lies: within the borders, outside of them, or across one."""
    if low <= figure.low and figure.high <= high:
        return AS_EXPECTED
    return OPPOSITE if figure.high < low or figure.low > high else INCONCLUSIVE


def _words(figure: Summary) -> str:
    if figure.low == figure.high:
        return f"{figure.median:.4g}"
    return f"{figure.median:.4g} ({figure.low:.4g} to {figure.high:.4g})"


def _ratio_words(ratio: Summary) -> str:
    decimals = ratio_decimals(ratio)
    median, low, high = (ratio_text(x, decimals) for x in (ratio.median, ratio.low, ratio.high))
    return f"ratio {median}" + f" ({low} to {high})" * (ratio.low < ratio.high)


def _no_divisor(expected: Expectation, runs: Runs, where: str) -> Verdict:
    """Nothing can be said of figures that are 0."""
    detail = f"{expected.metric} is 0 where it divides{where}"
    return replace(_made(expected, runs, INCONCLUSIVE, detail, None, ""), undecided=True)


def _ratio(expected: Ratio, runs: Runs, where: str, seed: int) -> Verdict:
    if all(median_of(part) <= 0 for part in runs):
        return _no_divisor(expected, runs, where)
    return _of_ratio(expected, runs, ratio_of_medians(runs[0], runs[1], seed), where)


def _growth(expected: Growth, runs: Runs, where: str, seed: int) -> Verdict:
    """One ratio of medians by another, bootstrapped together."""
    if any(median_of(part) <= 0 for part in runs[1:]):
        return _no_divisor(expected, runs, where)
    own, others = (ratio_of_medians(over, under, seed) for over, under in (runs[:2], runs[2:]))
    resampled = [run_medians(part, seed + number) for number, part in enumerate(runs)]
    # A resampled median of 0 counts as in ratio_of_medians.
    least = [median_of(part) / RATIO_MOST for part in runs]
    over, under, one, other = (
        np.maximum(medians, few) for medians, few in zip(resampled, least, strict=True)
    )
    growth = own.median / others.median
    interval = interval_of((over / under) / (one / other), growth)
    figure = Summary(growth, *interval, min(own.count, others.count))
    return _of_ratio(expected, runs, figure, where)


def _difference(expected: Difference, runs: Runs, where: str, seed: int) -> Verdict:
    """One difference of medians less another, as a share, bootstrapped together."""
    if median_of(runs[1]) <= 0:
        return _no_divisor(expected, runs, where)
    median = _less(*(median_of(part) for part in runs))
    resampled = [run_medians(part, seed + number) for number, part in enumerate(runs)]
    least = median_of(runs[1]) / RATIO_MOST  # as in ratio_of_medians
    resampled[1] = np.maximum(resampled[1], least)
    figure = Summary(median, *interval_of(_less(*resampled), median), min(map(len, runs)))
    low, high = expected.bounds()
    verdict = _side(figure, low, high)
    above, below = figure.low > NO_DIFFERENCE, figure.high < -NO_DIFFERENCE
    is_reversed = (high <= 0 and above) or (low >= 0 and below)
    words = f"share {_words(figure)}"
    none = max(-figure.low, figure.high) <= NO_DIFFERENCE
    covers_none = figure.low <= 0 <= figure.high and (low > 0 or high < 0)
    other_side = (high <= 0 < figure.low) or (low >= 0 > figure.high)
    if verdict == OPPOSITE and not is_reversed and not none:
        if covers_none:
            verdict, words = INCONCLUSIVE, words + COVERS_NONE
        elif other_side:
            verdict, words = INCONCLUSIVE, words + NO_OR_OPPOSITE
    detail = f"{words}, expected {expected.bounds_words()}{where}"
    return _made(expected, runs, verdict, detail, figure, SHARE_UNIT)


def _less(of: Any, to: Any, one: Any, other: Any) -> Any:
    return ((of - to) - (one - other)) / to


def _of_ratio(expected: Ratio | Growth, runs: Runs, ratio: Summary, where: str) -> Verdict:
    """The verdict on a ratio, by its bounds."""
    low, high = expected.bounds()
    verdict = _side(ratio, low, high)
    words = _ratio_words(ratio)
    if verdict == OPPOSITE and (low > 1 or high < 1):
        if _is_one(ratio):
            words += ", which is no effect"
        elif ratio.low <= 1 <= ratio.high:
            verdict, words = INCONCLUSIVE, words + COVERS_NONE
        elif (low > 1) == (ratio.low > 1):
            words += ", which is the direction expected, but not the size"
        elif not _is_reversed(ratio, low, high):
            verdict, words = INCONCLUSIVE, words + NO_OR_OPPOSITE
    detail = f"{words}, expected {expected.bounds_words()}{where}"
    return _made(expected, runs, verdict, detail, ratio, RATIO_UNIT)


def _is_reversed(ratio: Summary, low: float, high: float) -> bool:
    """Whether a ratio is certainly on the other side of 1 than its bounds, and not as good as 1:
    they have a side unless they tolerate a difference to both.
    """
    upwards = low > 1 or (low > 0 and high == float("inf"))
    downwards = high < 1 or low <= 0
    return (upwards and _is_below_one(ratio)) or (downwards and ratio.low > 1 + NO_DIFFERENCE)


def _is_below_one(ratio: Summary) -> bool:
    """Whether a ratio is certainly less than what is as good as 1."""
    return ratio.high < 1 - NO_DIFFERENCE


def _is_one(ratio: Summary) -> bool:
    """Whether a ratio is certainly as good as 1: there is no effect."""
    return ratio.low >= 1 - NO_DIFFERENCE and ratio.high <= 1 + NO_DIFFERENCE


def _between(expected: Between, runs: Runs, where: str, seed: int) -> Verdict:
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
    own = Summary(
        float(figures[0]), *interval_of(resampled[0], float(figures[0])), resampled[0].size
    )
    nearly = low * (1 - NO_DIFFERENCE), high * (1 + NO_DIFFERENCE)
    side = _side(own, *nearly)
    words = _words(own)
    if verdict == OPPOSITE and side == INCONCLUSIVE:
        verdict, words = INCONCLUSIVE, f"{words}, possibly within 1 % of the range"
    detail = f"{words}, expected {low:.4g} to {high:.4g}{where}"
    return _made(expected, runs, verdict, detail, own)


def _borders(figures: Samples, tolerance: float) -> tuple[Any, Any]:
    """The tolerated range between the second and the third row of `figures`."""
    ends = np.sort(figures[1:3], axis=0)
    return ends[0] * (1 - tolerance), ends[1] * (1 + tolerance)


def _equals(expected: Equals, runs: Runs, where: str, seed: int) -> Verdict:
    samples = np.concatenate(runs[0])
    others = sorted({float(value) for value in samples if value != expected.value})
    share = f"{np.count_nonzero(samples == expected.value)} of {samples.size}"
    found = f", others {', '.join(f'{value:g}' for value in others)}" if others else ""
    detail = f"{expected.value:g} in {share}{found}{where}"
    verdict = OPPOSITE if others else AS_EXPECTED
    return _made(expected, runs, verdict, detail, summarise_runs(runs[0], seed))


def _bound(expected: Bound, runs: Runs, where: str) -> Verdict:
    """One sample outside is enough; the figure is the extreme one, which has no interval."""
    samples = np.concatenate(runs[0])
    least, most = float(samples.min()), float(samples.max())
    low, high = expected.bounds()
    outside = int(np.count_nonzero((samples < low) | (samples > high)))
    extreme = most if expected.at_most is not None and least >= low else least
    detail = (
        f"{least:.4g} to {most:.4g} in {samples.size} samples, {outside} of them outside; "
        f"expected {expected.bounds_words()}{where}"
    )
    made = _made(expected, runs, OPPOSITE if outside else AS_EXPECTED, detail, None)
    return replace(made, measured=extreme)


def _within(expected: Within, runs: Runs, where: str, seed: int) -> Verdict:
    figure = summarise_runs(runs[0], seed)
    detail = f"{_words(figure)}, expected {expected.bounds_words()}{where}"
    return _made(expected, runs, _side(figure, *expected.bounds()), detail, figure)


def _near(expected: Near, runs: Runs, where: str, seed: int) -> Verdict:
    figure = summarise_runs(runs[0], seed)
    low, high = expected.range()
    detail = f"{_words(figure)}, expected {low:.4g} to {high:.4g}{where}"
    return _made(expected, runs, _side(figure, low, high), detail, figure)


def _order(expected: Order, runs: Runs, where: str, seed: int) -> Verdict:
    """Each pair is a ratio of medians; the worst pair decides."""
    medians = " / ".join(f"{median_of(part):.4g}" for part in runs)
    found = [
        _pair(expected, runs, pair, seed + number) for number, pair in enumerate(expected.pairs())
    ]
    pairs = tuple(
        replace(each, detail=f"{medians}; {each.detail}{where}", pair=number)
        for number, each in enumerate(found)
    )
    return replace(worst(pairs), cases=pairs if len(pairs) > 1 else ())


def _pair(expected: Order, runs: Runs, pair: tuple[int, int, bool], seed: int) -> Verdict:
    upper, lower, equal = pair
    if median_of(runs[upper]) <= 0 and median_of(runs[lower]) <= 0:
        return _no_divisor(expected, runs, "")
    ratio = ratio_of_medians(runs[upper], runs[lower], seed)
    places = expected.places()
    names = f"{_named(places[upper], places[lower])} by {_named(places[lower], places[upper])}"
    most = 1 + expected.tolerance
    if equal:
        verdict, wanted = _side(ratio, 1 / most, most), f"{1 / most:.3g} to {most:.3g}"
    elif _is_one(ratio):
        verdict, wanted = OPPOSITE, "above 1"
    else:
        outside = OPPOSITE if _is_below_one(ratio) else INCONCLUSIVE
        verdict, wanted = AS_EXPECTED if ratio.low > 1 else outside, "above 1"
    neither = NO_OR_OPPOSITE if verdict == INCONCLUSIVE and not equal and ratio.high < 1 else ""
    detail = f"{names}: {_ratio_words(ratio)}{neither}, expected {wanted}"
    return _made(expected, runs, verdict, detail, ratio, RATIO_UNIT)


def _named(place: Place, other: Place) -> str:
    """A place by what tells it from another one."""
    telling = {axis: value for axis, value in place.items() if other.get(axis) != value}
    return ", ".join(value_words(axis, value) for axis, value in telling.items())
