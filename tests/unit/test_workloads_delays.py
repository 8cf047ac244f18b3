"""Drawn delays: between their ends, with the right mean, and the same from the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from shrimpmx.errors import InputError
from shrimpmx.workloads.messages import draw_arrivals, draw_delays

COUNT = 20_000
MEAN_NS = 150_000
LIMIT_NS = 300_000


def test_delays_are_drawn_evenly_between_their_ends() -> None:
    drawn = draw_delays(100_000, 300_000, 7, COUNT)
    assert drawn.min() >= 100_000
    assert drawn.max() <= 300_000
    tenths = np.histogram(drawn, bins=10, range=(100_000, 300_000))[0]
    # Each tenth has 2000 of them, give or take 5 standard deviations of a binomial.
    assert np.abs(tenths - COUNT / 10).max() < 5 * np.sqrt(COUNT * 0.1 * 0.9)


def test_a_delay_without_a_longest_one_is_fixed() -> None:
    assert set(draw_delays(42_000, 0, 1, 10)) == {42_000}
    assert set(draw_delays(42_000, 42_000, 1, 10)) == {42_000}
    assert set(draw_delays(0, 0, 1, 10)) == {0}


def test_the_same_seed_draws_the_same_and_another_one_others() -> None:
    first = draw_delays(0, 300_000, 3, 100)
    assert np.array_equal(first, draw_delays(0, 300_000, 3, 100))
    for other in (0, 2, 4, 2**64 - 1):
        assert not np.array_equal(first, draw_delays(0, 300_000, other, 100))
    # Neighbouring seeds, as those of two ranks are, have nothing to do with each other.
    assert (
        abs(np.corrcoef(draw_delays(0, 10**6, 3, 1000), draw_delays(0, 10**6, 4, 1000))[0, 1]) < 0.2
    )


@pytest.mark.parametrize("ends", [(-1, 0), (0, -1), (300, 200)])
def test_delays_have_to_lie_between_two_times(ends: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="between two times"):
        draw_delays(*ends, 1, 1)


@pytest.mark.parametrize("arrivals", ["fixed", "uniform", "exponential", "bimodal"])
def test_arrivals_have_their_mean(arrivals: str) -> None:
    drawn = draw_arrivals(arrivals, MEAN_NS, LIMIT_NS, 5, COUNT)
    assert drawn.min() >= 0
    # 5 standard errors of the widest of them, whose deviation is 2.4 times the mean.
    assert drawn.mean() == pytest.approx(MEAN_NS, rel=5 * 2.4 / np.sqrt(COUNT))


def test_each_distribution_has_its_shape() -> None:
    drawn = {
        name: draw_arrivals(name, MEAN_NS, LIMIT_NS, 5, COUNT)
        for name in ("fixed", "uniform", "exponential", "bimodal", "adversary")
    }
    assert set(drawn["fixed"]) == {MEAN_NS}
    assert drawn["uniform"].max() <= 2 * MEAN_NS
    assert drawn["uniform"].std() == pytest.approx(2 * MEAN_NS / np.sqrt(12), rel=0.05)
    assert drawn["exponential"].std() == pytest.approx(MEAN_NS, rel=0.05)
    assert set(drawn["bimodal"]) == {MEAN_NS // 5, MEAN_NS * 82 // 10}
    assert (drawn["bimodal"] < MEAN_NS).mean() == pytest.approx(0.9, abs=0.02)
    assert set(drawn["adversary"]) == {LIMIT_NS + 20_000}


def test_an_unknown_distribution_names_those_there_are() -> None:
    with pytest.raises(InputError, match="exponential, bimodal or adversary, not 'pareto'"):
        draw_arrivals("pareto", MEAN_NS, LIMIT_NS, 1, 1)
