"""Medians, intervals and ratios: exact cases, agreement with the plain bootstrap, advice."""

from __future__ import annotations

import numpy as np
import pytest

from shrimpmx.results.statistics import (
    Summary,
    bootstrap_medians,
    instability,
    ratio_of_medians,
    summarise,
    summarise_runs,
)


def test_one_sample_is_its_own_interval() -> None:
    assert summarise([7.0]) == Summary(7.0, 7.0, 7.0, 1)


def test_equal_samples_have_no_width() -> None:
    summary = summarise([3.0] * 50)
    assert (summary.median, summary.low, summary.high) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize("count", [2, 3, 6, 7, 50, 101])
def test_shortcut_agrees_with_drawing_every_resample(count: int) -> None:
    samples = np.random.default_rng(count).gamma(2.0, 5.0, count)
    drawn = np.random.default_rng(1).choice(samples, (20_000, count))
    plain = np.median(drawn, axis=1)
    short = bootstrap_medians(samples, resamples=20_000)
    assert short.mean() == pytest.approx(plain.mean(), rel=0.02)
    assert short.std() == pytest.approx(plain.std(), rel=0.05)


def test_interval_covers_the_median_and_narrows_with_samples() -> None:
    random = np.random.default_rng(5)
    few, many = (summarise(random.normal(100, 10, count)) for count in (20, 2000))
    for summary in (few, many):
        assert summary.low <= summary.median <= summary.high
    assert many.half_width < few.half_width / 3


def test_same_seed_gives_the_same_interval() -> None:
    samples = np.random.default_rng(2).normal(10, 1, 99)
    assert summarise(samples, seed=4) == summarise(samples, seed=4)
    assert summarise(samples, seed=4) != summarise(samples, seed=5)


def test_order_of_samples_does_not_matter() -> None:
    samples = np.random.default_rng(2).normal(10, 1, 99)
    assert summarise(samples) == summarise(samples[::-1])


@pytest.mark.parametrize("bad", [[], [float("nan")], [1.0, float("inf")]])
def test_nothing_or_not_finite_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="a statistic needs"):
        summarise(bad)


def test_ratio_of_medians() -> None:
    random = np.random.default_rng(3)
    ratio = ratio_of_medians([random.normal(200, 2, 400)], [random.normal(100, 2, 300)])
    assert ratio.low < ratio.median < ratio.high
    assert ratio.median == pytest.approx(2.0, rel=0.01)
    assert ratio.count == 300
    with pytest.raises(ValueError, match="above zero"):
        ratio_of_medians([np.zeros(1)], [np.zeros(1)])


def test_from_three_runs_on_the_interval_is_over_runs() -> None:
    random = np.random.default_rng(4)
    runs = [random.normal(median, 1, 200) for median in (100, 105, 120)]
    two, three = summarise_runs(runs[:2]), summarise_runs(runs)
    assert two.half_width < 3
    assert three.median == float(np.median(np.concatenate(runs)))
    assert (three.low, three.high) == (np.median(runs[0]), np.median(runs[2]))
    assert three.count == 600


def test_many_runs_narrow_the_interval() -> None:
    random = np.random.default_rng(6)
    runs = [random.normal(random.normal(100, 10), 1, 20) for _ in range(60)]
    assert summarise_runs(runs).half_width < summarise_runs(runs[:5]).half_width


def test_advice_when_unstable() -> None:
    assert instability(Summary(10, 9.9, 10.1, 50), "us") is None
    wide = instability(Summary(10, 8, 12, 50), "us")
    assert wide is not None
    assert "40%" in wide
    assert "10 us" in wide
    assert "repeats" in wide
    few = instability(Summary(10, 10, 10, 2))
    assert few is not None
    assert few.startswith("only 2 samples")
    assert "repeats=5" in few


def test_a_ratio_to_runs_of_which_some_are_zero_is_finite() -> None:
    runs = [np.array([0.0]), np.array([1.0]), np.array([2.0])]
    found = ratio_of_medians([np.array([3.0])] * 3, runs)
    assert found.median == 3
    assert 3 <= found.high <= 3e6
    nothing = ratio_of_medians([np.array([3.0])] * 3, [np.zeros(1)] * 3)
    assert nothing.low == nothing.median == nothing.high == 1e6
