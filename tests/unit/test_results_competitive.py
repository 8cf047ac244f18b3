"""Competitive spinning, told from a trace: what limits cost, and the bounds that theory gives."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrimpmx.errors import InputError
from shrimpmx.results.competitive import (
    LIM_AGARWAL,
    best_fixed_limit,
    competitive_ratio,
    cost_of_limit,
    offline_cost,
)

T_BLOCK = 17_000
times = st.integers(0, 10**9)
traces = st.lists(times, max_size=50)
blocks = st.integers(1, 10**8)


def test_costs_of_a_trace_that_can_be_added_up_by_hand() -> None:
    delays = [10, 100, 30]
    assert offline_cost(delays, 50) == 10 + 50 + 30
    assert cost_of_limit(delays, 0, 50) == 3 * 50
    assert cost_of_limit(delays, 30, 50) == 10 + (30 + 50) + 30
    assert cost_of_limit(delays, math.inf, 50) == 140
    assert competitive_ratio(delays, 30, 50) == 120 / 90
    assert best_fixed_limit(delays, 50) == 30
    assert best_fixed_limit(delays, 5) == 0


@given(traces, blocks)
def test_a_limit_of_t_block_never_costs_more_than_twice_the_optimum(
    delays: list[int], t_block: int
) -> None:
    """Invariant 12 (Karlin et al. 1991; waiting, 3.2)."""
    assert cost_of_limit(delays, t_block, t_block) <= 2 * offline_cost(delays, t_block)


@given(traces, blocks, times)
def test_no_limit_is_better_than_the_optimum(delays: list[int], t_block: int, limit: int) -> None:
    assert competitive_ratio(delays, limit, t_block) * (1 + 1e-12) >= 1


@pytest.mark.parametrize("share", [0.1, 0.54, 0.62, 1.0, 1.5, 4.0])
def test_the_worst_case_is_a_delay_just_longer_than_the_limit(share: float) -> None:
    limit = share * T_BLOCK
    ratio = competitive_ratio([limit * (1 + 1e-9)], limit, T_BLOCK)
    assert ratio == pytest.approx((limit + T_BLOCK) / min(limit, T_BLOCK), rel=1e-6)
    assert ratio >= 2 * (1 - 1e-6)


def test_a_ratio_without_a_cost_at_best() -> None:
    assert competitive_ratio([], 5, T_BLOCK) == 1
    assert competitive_ratio([1], 5, 0) == math.inf


@given(traces, blocks)
def test_no_fixed_limit_beats_the_best_in_hindsight(delays: list[int], t_block: int) -> None:
    best = best_fixed_limit(delays, t_block)
    least = cost_of_limit(delays, best, t_block)
    for limit in (0, t_block, math.inf, *delays):
        cost = cost_of_limit(delays, limit, t_block)
        assert least <= cost
        assert best <= limit or least < cost


def expected_ratio(share: float, survival: list[float], step: float) -> float:
    """Of a limit (in T_block) to the optimum, from P(delay > x) at x = 0, step, ... in T_block."""
    at_limit, at_one = round(share / step), round(1 / step)
    cost = sum(survival[:at_limit]) * step + survival[at_limit]
    return cost / (sum(survival[:at_one]) * step)


@pytest.mark.parametrize("kind", ["exponential", "uniform"])
def test_lim_and_agarwals_limits_keep_their_ratio_whatever_the_mean(kind: str) -> None:
    share, ratio = LIM_AGARWAL[kind]
    step, longest = 1e-3, 4000
    worst = 0.0
    for scale in [0.02 * 1.05**number for number in range(200)]:
        survival = [
            math.exp(-x * step / scale) if kind == "exponential" else max(0, 1 - x * step / scale)
            for x in range(longest)
        ]
        worst = max(worst, expected_ratio(share, survival, step))
    assert worst == pytest.approx(ratio, rel=0.01)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: offline_cost([-1], 5), "an arrival delay is 0 or more"),
        (lambda: offline_cost([math.nan], 5), "an arrival delay is 0 or more"),
        (lambda: cost_of_limit([1], -1, 5), "a spin limit is 0 or more, not -1"),
        (lambda: best_fixed_limit([1], -5), "T_block is 0 or more, not -5"),
    ],
)
def test_times_below_zero_are_input_errors(call: object, sentence: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=f"^{sentence}$"):
        call()
