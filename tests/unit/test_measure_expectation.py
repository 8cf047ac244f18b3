"""Verdicts are computed: each one from samples made for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from shrimpmx.measure.expectation import (
    AS_EXPECTED,
    INCONCLUSIVE,
    NOT_HERE,
    OPPOSITE,
    Between,
    Ratio,
    common_state,
    evaluate,
    samples_of,
)


def point(
    way: str, median: float, spread: float = 1.0, state: str = "near", **more: Any
) -> dict[str, Any]:
    samples = np.random.default_rng(int(median)).normal(median, spread, 100)
    metric = {"samples": samples.tolist(), "repeats": [{"state": state, "count": 100}]}
    return {"params": {"way": way, **more}, "metrics": {"time": metric}, "states": [state]}


SLOW = Ratio(text="t", metric="time", of={"way": "a"}, to={"way": "b"}, at_least=2)


@pytest.mark.parametrize(
    ("median", "spread", "verdict"),
    [(300, 1, AS_EXPECTED), (150, 1, OPPOSITE), (200, 60, INCONCLUSIVE)],
)
def test_ratio(median: float, spread: float, verdict: str) -> None:
    assert evaluate(SLOW, [point("a", median, spread), point("b", 100)]).verdict == verdict


def test_the_other_axes_are_all_tried_and_the_worst_counts() -> None:
    points = [
        point(way, median, size=size)
        for size, medians in ((0, (300, 100)), (1, (90, 100)))
        for way, median in zip("ab", medians, strict=True)
    ]
    assert evaluate(SLOW, points[:2]).verdict == AS_EXPECTED
    assert evaluate(SLOW, points).verdict == OPPOSITE


def test_missing_figures_are_not_measurable() -> None:
    without = {**point("b", 100), "metrics": {"time": {"unavailable": "no counters"}}}
    verdict = evaluate(SLOW, [point("a", 300), without])
    assert (verdict.verdict, verdict.detail) == (NOT_HERE, "no counters")
    assert evaluate(SLOW, [point("a", 300)]).verdict == NOT_HERE


def test_between_with_tolerance() -> None:
    between = Between(
        text="b", metric="time", of={"way": "x"}, one={"way": "a"}, other={"way": "b"}
    )
    ends = [point("a", 200), point("b", 100)]
    for median, verdict in ((150, AS_EXPECTED), (90, AS_EXPECTED), (60, OPPOSITE)):
        assert evaluate(between, [point("x", median), *ends]).verdict == verdict


def test_samples_of_one_state_are_compared() -> None:
    mixed: dict[str, Any] = {
        "params": {},
        "metrics": {
            "time": {
                "samples": [1.0, 1.0, 5.0],
                "repeats": [{"state": "near", "count": 2}, {"state": "far", "count": 1}],
            }
        },
        "states": ["near", "far"],
    }
    far = {**mixed, "states": ["far"]}
    assert common_state(mixed, far) == "far"
    assert common_state({"states": ["mixed"]}, far) is None
    assert np.array_equal(np.asarray(samples_of(mixed, "time", "far")), [5.0])


def test_a_ratio_without_bounds_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs at_least or at_most"):
        Ratio(text="t", metric="time", of={}, to={})
