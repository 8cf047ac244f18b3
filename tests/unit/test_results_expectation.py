"""Verdicts are computed: each one from samples made for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from shrimpmx.results.expectation import common_state, evaluate
from shrimpmx.results.expectation_kinds import (
    AS_EXPECTED,
    INCONCLUSIVE,
    NOT_HERE,
    NOT_RUN,
    OPPOSITE,
    Between,
    Bound,
    Equals,
    Near,
    Order,
    Ratio,
    Within,
)
from shrimpmx.results.runs import NORMAL_PRIORITY, ONE_CPU, OVERSUBSCRIBED, limits_of


def point(
    way: str, median: float, spread: float = 1.0, state: str = "near", **more: Any
) -> dict[str, Any]:
    samples = np.random.default_rng(int(median)).normal(median, spread, 100)
    return made(way, {state: [samples.tolist()]}, **more)


def made(
    way: str,
    runs: dict[str, list[list[float]]],
    metric: str = "half_round_trip",
    limits: tuple[str, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    """A point with the samples of each of its runs, by state."""
    each = [(state, run) for state, of_state in runs.items() for run in of_state]
    data = {
        "samples": [sample for _, run in each for sample in run],
        "repeats": [{"state": state, "count": len(run)} for state, run in each],
    }
    return {
        "params": {"way": way, **more},
        "metrics": {metric: data},
        "states": [state for state, _ in each],
        "limits": list(limits),
    }


SLOW = Ratio(text="t", metric="half_round_trip", of={"way": "a"}, to={"way": "b"}, at_least=2)
BETWEEN = Between(
    text="b", metric="half_round_trip", of={"way": "x"}, one={"way": "a"}, other={"way": "b"}
)


@pytest.mark.parametrize(
    ("runs", "verdict", "detail"),
    [
        ([[167.0, 167.0]], AS_EXPECTED, "167 in 2 of 2"),
        ([[167.0], [167.0, 168.0], [166.0]], OPPOSITE, "167 in 2 of 4, others 166, 168"),
    ],
)
def test_an_exact_count_holds_in_every_sample(
    runs: list[list[float]], verdict: str, detail: str
) -> None:
    expected = Equals(text="e", metric="packets_per_message", of={"way": "a"}, value=167)
    points = [made(way, {"near": runs}, "packets_per_message") for way in ("a", "b")]
    found = evaluate(expected, points)
    assert (found.verdict, found.detail) == (verdict, detail)


@pytest.mark.parametrize(
    ("median", "spread", "verdict"),
    [(300, 1, AS_EXPECTED), (150, 1, OPPOSITE), (200, 60, INCONCLUSIVE)],
)
def test_ratio(median: float, spread: float, verdict: str) -> None:
    assert evaluate(SLOW, [point("a", median, spread), point("b", 100)]).verdict == verdict


@pytest.mark.parametrize(
    ("above", "below", "verdict"),
    [
        (55.0, 0.0, AS_EXPECTED),
        (0.0, 55.0, OPPOSITE),
        (0.0, 0.0, INCONCLUSIVE),
    ],
)
def test_a_figure_of_zero_is_less_than_any_other(above: float, below: float, verdict: str) -> None:
    over, under = (
        made(way, {"near": [[figure] * 3] * 6}, "taken_spinning")
        for way, figure in (("a", above), ("b", below))
    )
    found, detail = verdict_of(over, under, metric="taken_spinning")
    assert found == verdict
    assert ("> 1,000,000" in detail) == (verdict == AS_EXPECTED)


def test_the_other_axes_are_all_tried_and_the_worst_counts() -> None:
    points = [
        point(way, median, size=size)
        for size, medians in ((0, (300, 100)), (1, (90, 100)))
        for way, median in zip("ab", medians, strict=True)
    ]
    assert evaluate(SLOW, points[:2]).verdict == AS_EXPECTED
    assert evaluate(SLOW, points).verdict == OPPOSITE


def test_missing_figures_are_not_measurable() -> None:
    without = {**point("b", 100), "metrics": {"half_round_trip": {"unavailable": "no counters"}}}
    verdict = evaluate(SLOW, [point("a", 300), without])
    assert (verdict.verdict, verdict.detail) == (NOT_HERE, "no counters")
    assert evaluate(SLOW, [point("a", 300)]).verdict == NOT_RUN


@pytest.mark.parametrize("runs", [[], [[]]])
@pytest.mark.parametrize("expected", [
    Equals(text="e", metric="packets_per_message", of={"way": "a"}, value=167),
    Ratio(
        text="r", metric="packets_per_message", of={"way": "a"}, to={"way": "b"}, at_least=2,
        exact=True,
    ),
    SLOW,
])  # fmt: skip
def test_no_samples_are_not_measurable(expected: Equals | Ratio, runs: list[list[float]]) -> None:
    points = [made(way, {"near": runs}, expected.metric) for way in ("a", "b")]
    verdict = evaluate(expected, points)
    assert (verdict.verdict, verdict.detail) == (NOT_HERE, f"{expected.metric} has no samples")


def test_between_with_tolerance() -> None:
    ends = [point("a", 200), point("b", 100)]
    for median, verdict in ((150, AS_EXPECTED), (90, AS_EXPECTED), (60, OPPOSITE)):
        assert evaluate(BETWEEN, [point("x", median), *ends]).verdict == verdict


def verdict_of(over: dict[str, Any], under: dict[str, Any], **changes: Any) -> tuple[str, str]:
    found = evaluate(SLOW.model_copy(update=changes), [over, under])
    return found.verdict, found.detail


def test_times_are_compared_within_the_state_that_both_have_most_runs_of() -> None:
    far, near = [[300.0] * 60] * 3, [[100.0] * 60]
    over = made("a", {"near": near, "far": far})
    under = made("b", {"near": near, "far": [[100.0] * 60] * 2})
    assert common_state("half_round_trip", over, under) == "far"
    verdict, detail = verdict_of(over, under)
    assert verdict == AS_EXPECTED
    assert detail == "ratio 3.00, expected at least 2; CPUs far"


@pytest.mark.parametrize("states", [("near", "far"), ("mixed", "mixed"), ("unknown", "near")])
def test_times_without_a_common_distance_are_not_compared(states: tuple[str, str]) -> None:
    over, under = (
        made(way, {state: [[median] * 60] * 3})
        for way, state, median in zip("ab", states, (300.0, 100.0), strict=True)
    )
    verdict, detail = verdict_of(over, under)
    assert verdict == INCONCLUSIVE
    assert detail.startswith(f"no runs with the CPUs at one distance ({states[0]} against")
    three = [over, made("x", {"near": [[200.0] * 60] * 3}), under]
    assert evaluate(BETWEEN, three).verdict == INCONCLUSIVE


def test_counts_are_compared_whatever_the_state() -> None:
    over, under = (
        made(way, {state: [[median]] * 3}, "interrupts_per_message")
        for way, state, median in (("a", "near", 3.0), ("b", "far", 1.0))
    )
    assert verdict_of(over, under, metric="interrupts_per_message")[0] == AS_EXPECTED


@pytest.mark.parametrize("metric", ["message_rate", "interrupts_per_message"])
def test_few_runs_with_one_sample_each_prove_nothing(metric: str) -> None:
    def pair(runs: int) -> tuple[dict[str, Any], dict[str, Any]]:
        over, under = ({"near": [[median]] * runs} for median in (3.0, 1.0))
        return made("a", over, metric), made("b", under, metric)

    assert verdict_of(*pair(1), metric=metric)[0] == INCONCLUSIVE
    verdict, detail = verdict_of(*pair(2), metric=metric)
    assert verdict == INCONCLUSIVE
    assert detail.startswith("only 2 runs")
    assert detail.endswith("--set repeats=5")
    assert verdict_of(*pair(3), metric=metric)[0] == AS_EXPECTED


def test_an_exact_count_needs_one_run() -> None:
    over, under = (
        made(way, {"unknown": [[median]]}, "system_calls_per_wait", limits=(ONE_CPU,))
        for way, median in (("a", 3.0), ("b", 1.0))
    )
    assert verdict_of(over, under, metric="system_calls_per_wait")[0] == NOT_HERE
    exact = {"metric": "system_calls_per_wait", "exact": True}
    assert verdict_of(over, under, **exact)[0] == AS_EXPECTED
    with pytest.raises(ValidationError, match="'t' is exact, but message_rate is a time"):
        Ratio(text="t", metric="message_rate", of={}, to={"way": "b"}, at_most=1, exact=True)


def test_runs_that_disagree_make_a_ratio_inconclusive() -> None:
    # 600 samples with a median ratio of 2.5, but one of three runs says 1.5.
    over = made("a", {"near": [[150.0] * 100, [250.0] * 100, [260.0] * 100]})
    under = made("b", {"near": [[100.0] * 100] * 3})
    assert verdict_of(over, under)[0] == INCONCLUSIVE


@pytest.mark.parametrize("limit", [ONE_CPU, OVERSUBSCRIBED, NORMAL_PRIORITY])
def test_the_placement_can_forbid_a_verdict_on_times(limit: str) -> None:
    over, under = (
        made(way, {"near": [[median] * 60] * 3}, limits=(limit,))
        for way, median in (("a", 100.0), ("b", 100.0))
    )
    assert verdict_of(over, under) == (NOT_HERE, limit)
    counts = [
        made(way, {"near": [[median]] * 3}, "switches_per_wait", limits=(limit,))
        for way, median in (("a", 3.0), ("b", 1.0))
    ]
    wanted = NOT_HERE if limit == ONE_CPU else AS_EXPECTED
    assert verdict_of(counts[0], counts[1], metric="switches_per_wait")[0] == wanted


@pytest.mark.parametrize("limit", [ONE_CPU, OVERSUBSCRIBED, NORMAL_PRIORITY])
def test_the_placement_forbids_no_verdict_on_what_happens_one_by_one(limit: str) -> None:
    over, under = (
        made(way, {"near": [[median] * 60] * 3}, limits=(limit,))
        for way, median in (("a", 200.0), ("b", 100.0))
    )
    assert verdict_of(over, under)[0] == NOT_HERE
    assert verdict_of(over, under, serial=True)[0] == AS_EXPECTED
    over = {**over, "steered": [1]}
    assert verdict_of(over, under, serial=True)[0] == NOT_HERE


def test_nothing_is_judged_by_a_point_whose_interrupts_were_steered() -> None:
    expected = Equals(text="e", metric="packets_per_message", of={"way": "a"}, value=2)
    counted = made("a", {"near": [[2.0]] * 3}, "packets_per_message")
    assert evaluate(expected, [counted]).verdict == AS_EXPECTED
    found = evaluate(expected, [{**counted, "steered": [1, 0]}])
    assert (found.verdict, found.detail) == (
        NOT_HERE,
        "interrupts of nodes 0-1 were redirected during the run (shrimpmx affinity)",
    )


def test_limits_follow_from_the_placement() -> None:
    two: dict[str, Any] = {"processes": [{"cpu": 0}, {"cpu": 1}], "realtime": True}
    one = {"processes": [{"cpu": 0}, {"cpu": 0}], "realtime": True}
    assert limits_of([two, {}]) == []
    assert limits_of([two, one]) == [ONE_CPU]
    assert limits_of([{**two, "oversubscribed": True, "realtime": False}]) == [
        OVERSUBSCRIBED,
        NORMAL_PRIORITY,
    ]


def test_between_is_inconclusive_where_its_interval_covers_the_border() -> None:
    ends = [made("a", {"near": [[200.0] * 20] * 3}), made("b", {"near": [[100.0] * 20] * 3})]
    # Tolerated are 75 to 250.
    for medians, verdict in (
        ((80.0, 90.0, 95.0), AS_EXPECTED),
        ((60.0, 80.0, 90.0), INCONCLUSIVE),
        ((240.0, 245.0, 260.0), INCONCLUSIVE),
        ((251.0, 252.0, 252.5), OPPOSITE),  # all within 1 % of it
        ((251.0, 270.0, 280.0), INCONCLUSIVE),  # that, or reversed
        ((260.0, 270.0, 280.0), OPPOSITE),
    ):
        point = made("x", {"near": [[median] * 20 for median in medians]})
        assert evaluate(BETWEEN, [point, *ends]).verdict == verdict


def test_a_ratio_without_bounds_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs at_least or at_most"):
        Ratio(text="t", metric="half_round_trip", of={}, to={"way": "b"})


def test_bounds_that_leave_nothing_are_refused() -> None:
    sentence = "expectation 't' can never hold: at_least 3 is more than at_most 2"
    with pytest.raises(ValidationError, match=sentence):
        Ratio(text="t", metric=COUNT, of={}, to={"way": "b"}, at_least=3, at_most=2)
    assert Within(text="t", metric=COUNT, of={}, at_least=2, at_most=2).bounds() == (2, 2)


def test_a_place_is_not_compared_with_itself() -> None:
    with pytest.raises(ValidationError, match=r"compares {'way': 'a'} with itself"):
        Ratio(text="t", metric=COUNT, of={"way": "a"}, to={"way": "a"}, at_least=1)
    with pytest.raises(ValidationError, match=r"compares {'way': 'a', 'delay_us': 5} with itself"):
        Ratio(text="t", metric=COUNT, of={"way": "a", "delay_us": 5}, to={"way": "a"}, at_least=1)
    with pytest.raises(ValidationError, match="with itself"):
        ranking("ab", "b")


def test_the_scope_names_what_is_fixed_and_what_was_all_tried() -> None:
    points = [
        point(way, median, size_bytes=size, mode=mode, delay_us=5)
        for mode in ("two-node", "generator")
        for size in (0, 128)
        for way, median in (("a", 300), ("b", 100))
    ]
    axes = ["mode", "size_bytes", "way", "delay_us"]
    fixed = SLOW.model_copy(update={"of": {"way": "a", "mode": "generator"}})
    assert evaluate(fixed, points, axes=axes).scope == "generator mode, all sizes, delay 5 µs"
    assert evaluate(SLOW, points, axes=axes).scope == "all modes, all sizes, delay 5 µs"
    assert evaluate(SLOW, points).scope == ""


@pytest.mark.parametrize(
    ("found", "verdict", "where"),
    [
        ((5.0, 5.0, 5.0), AS_EXPECTED, "5 to 5 in 2 samples, {}; the same at all 3 points"),
        ((5.0, 6.0, 7.0), AS_EXPECTED, "5 to 5 in 2 samples, {}; shown: pairs 1, one of 3 points "
         "that agree, 5 to 7"),
        ((5.0, 6.0, 9.0), OPPOSITE, "9 to 9 in 2 samples, {}; at pairs 4"),
    ],
)  # fmt: skip
def test_a_verdict_over_several_points_says_whether_they_agree(
    found: tuple[float, ...], verdict: str, where: str
) -> None:
    expected = Bound(text="b", metric="moves", of={"way": "a"}, at_most=8)
    points = [
        made("a", {"near": [[value], [value]]}, "moves", pairs=pairs)
        for pairs, value in zip((1, 2, 4), found, strict=True)
    ]
    judged = evaluate(expected.model_copy(update={"exact": True}), points, axes=("pairs",))
    outside = sum(value > 8 for value in found) * 2
    words = f"{outside} of them outside; expected at most 8"
    assert (judged.verdict, judged.detail) == (verdict, where.format(words))
    assert judged.scope == "all values of pairs"


COUNT = "interrupts_per_message"


def counts(way: str, *runs: float, **more: Any) -> dict[str, Any]:
    """A point with one count per run."""
    return made(way, {"near": [[figure] for figure in runs]}, COUNT, **more)


NEAR = Near(text="n", metric=COUNT, of={"way": "a"}, value=100)


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ((85.0, 100.0, 115.0), AS_EXPECTED),
        ((115.0, 115.0, 115.0), AS_EXPECTED),
        ((84.0, 100.0, 101.0), INCONCLUSIVE),
        ((100.0, 100.0, 116.0), INCONCLUSIVE),
        ((114.0, 116.0, 120.0), INCONCLUSIVE),
        ((116.0, 117.0, 118.0), OPPOSITE),
        ((80.0, 83.0, 84.0), OPPOSITE),
    ],
)
def test_near_needs_the_whole_interval_inside(runs: tuple[float, ...], verdict: str) -> None:
    found = evaluate(NEAR, [counts("a", *runs)])
    assert found.verdict == verdict
    assert found.ci95 == [min(runs), max(runs)]
    assert (found.measured, found.unit) == (float(np.median(runs)), "irq/msg")
    assert "expected 85 to 115" in found.detail


def test_times_are_those_of_the_emulated_platform() -> None:
    point = made("a", {"near": [[600.0] * 20] * 3})
    point["metrics"]["half_round_trip"]["scaled"] = {"scale": 0.125}
    near = Near(text="n", metric="half_round_trip", of={}, value=75, tolerance=0.01)
    found = evaluate(near, [point])
    assert (found.verdict, found.measured, found.figures) == (AS_EXPECTED, 75.0, [75.0])
    other = made("b", {"near": [[600.0] * 20] * 3})
    assert evaluate(SLOW, [point, other]).measured == 0.125


@pytest.mark.parametrize(
    ("bounds", "verdict", "measured"),
    [
        ({"at_most": 75}, AS_EXPECTED, 75.0),
        ({"at_most": 74.9}, OPPOSITE, 75.0),
        ({"at_least": 10}, AS_EXPECTED, 10.0),
        ({"at_least": 10, "at_most": 75}, AS_EXPECTED, 75.0),
        ({"at_least": 11, "at_most": 75}, OPPOSITE, 10.0),
    ],
)
def test_a_bound_holds_for_every_sample(
    bounds: dict[str, float], verdict: str, measured: float
) -> None:
    expected = Bound(text="b", metric=COUNT, of={"way": "a"}, **bounds)
    found = evaluate(expected, [counts("a", 10.0, 20.0, 20.0, 20.0, 75.0)])
    assert (found.verdict, found.measured, found.ci95) == (verdict, measured, None)
    few = evaluate(expected, [counts("a", 20.0, 20.0)])
    assert (few.verdict, few.measured) == (INCONCLUSIVE, 20.0)


def ranking(*tiers: str, tolerance: float = 0.1) -> Order:
    """An order of ways, one letter each: those of a rank are about equal."""
    return Order(
        text="o",
        metric=COUNT,
        tiers=tuple(tuple({"way": way} for way in tier) for tier in tiers),
        tolerance=tolerance,
    )


@pytest.mark.parametrize(
    ("figures", "verdict", "decides"),
    [
        ({"a": 490, "b": 435, "c": 423, "d": 252}, AS_EXPECTED, "a by b: ratio 1.13"),
        ({"a": 490, "b": 435, "c": 390, "d": 252}, OPPOSITE, "b by c: ratio 1.12"),
        ({"a": 430, "b": 435, "c": 423, "d": 252}, OPPOSITE, "a by b: ratio 0.9885"),
        ({"a": 490, "b": 250, "c": 250, "d": 252}, OPPOSITE, "b by d: ratio 0.9921"),
        ({"a": 435, "b": 435, "c": 423, "d": 252}, OPPOSITE, "a by b: ratio 1.0000"),
    ],
)
def test_an_order_is_decided_by_its_worst_pair(
    figures: dict[str, float], verdict: str, decides: str
) -> None:
    points = [counts(way, *[figure] * 3) for way, figure in figures.items()]
    found = evaluate(ranking("a", "bc", "d"), points)
    assert found.verdict == verdict
    assert decides in found.detail
    assert found.figures == list(figures.values())
    assert found.unit == "ratio"


def test_an_order_compares_each_place_with_its_rank_and_the_next() -> None:
    pairs = list(ranking("a", "bc", "d").pairs())
    assert pairs == [(0, 1, False), (0, 2, False), (1, 2, True), (1, 3, False), (2, 3, False)]
    with pytest.raises(ValidationError, match="needs at least two places to compare"):
        ranking("a")


def test_an_order_whose_runs_overlap_is_inconclusive() -> None:
    points = [counts("a", 100.0, 110.0, 120.0), counts("b", 90.0, 100.0, 115.0)]
    assert evaluate(ranking("a", "b"), points).verdict == INCONCLUSIVE
    assert evaluate(ranking("ab"), points).verdict == INCONCLUSIVE
    zero = [counts(way, 0.0, 0.0, 0.0) for way in "ab"]
    assert evaluate(ranking("a", "b"), zero).verdict == INCONCLUSIVE
    assert evaluate(ranking("a", "b"), [counts("a", 1.0, 1.0, 1.0), zero[1]]).verdict == AS_EXPECTED


def test_a_place_that_was_not_run_is_not_ranked() -> None:
    found = evaluate(ranking("a", "b"), [counts("a", 1.0, 1.0, 1.0)])
    assert (found.verdict, found.measured) == (NOT_RUN, None)


def test_a_verdict_tells_the_figure_that_it_was_judged_by() -> None:
    found = evaluate(SLOW, [made("a", {"near": [[300.0] * 60] * 3}), point("b", 100, 0)])
    assert (found.measured, found.ci95, found.unit) == (3.0, [3.0, 3.0], "ratio")
    assert found.figures == [300.0, 100.0]


@pytest.mark.parametrize(
    ("runs", "verdict", "words"),
    [
        ((4.0, 4.1, 4.2), AS_EXPECTED, "expected at most 0.5"),
        ((9.0, 10.0, 11.0), INCONCLUSIVE, "which covers no effect"),
        ((8.0, 8.1, 8.2), OPPOSITE, "the direction expected, but not the size"),
        ((12.0, 12.1, 12.2), OPPOSITE, "expected at most 0.5"),
    ],
)
def test_no_effect_is_inconclusive_and_a_wrong_size_is_called_one(
    runs: tuple[float, ...], verdict: str, words: str
) -> None:
    less = Ratio(text="l", metric=COUNT, of={"way": "a"}, to={"way": "b"}, at_most=0.5)
    found = evaluate(less, [counts("a", *runs), counts("b", 9.9, 10.0, 10.1)])
    assert found.verdict == verdict
    assert words in found.detail
    assert ("direction" in found.detail) == ("direction" in words)


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([1.90, 1.93, 1.98], AS_EXPECTED),
        ([1.95, 1.97, 2.02], INCONCLUSIVE),
        ([2.01, 2.02, 2.03], OPPOSITE),
    ],
)
def test_within_is_decided_by_where_the_whole_interval_lies(
    runs: list[float], verdict: str
) -> None:
    expected = Within(text="w", metric=COUNT, of={"way": "a"}, at_most=2.0)
    found = evaluate(expected, [made("a", {"near": [[run] for run in runs]}, COUNT)])
    assert found.verdict == verdict
    assert "expected at most 2" in found.detail
    assert found.ci95 is not None
