"""Medians, bootstrap confidence intervals and ratios of raw samples, by run.

Everything is seeded, so that a report made twice from one result is the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float64]

# Resamples of a bootstrap: the percentiles of a 95 % interval settle near 1000.
RESAMPLES = 1000
# An interval wider than this share of the median is called unstable (ours).
UNSTABLE_SHARE = 0.10
SAMPLES_WISHED = 5
# ± misstates an interval if one half is longer by this factor than the other, and an end moves by
# more than this share of the median (ours).
LOPSIDED, MOVED_SHARE = 1.5, 0.01
# Percentiles of a tail, by name, each with the samples that it takes: of fewer it would be their
# longest (ours).
PERCENTILES = {"p99": (99.0, 100), "p99.9": (99.9, 1000)}
# From this many runs on an interval is one over runs: their medians are independent, while the
# samples of one run share a placement and a state of the CPUs (ours, docs/decisions.md).
RUNS_LEAST = 3
# No ratio above this says more; it stands for one to 0.
RATIO_MOST = 1_000_000


@dataclass(frozen=True)
class Summary:
    """Median and its 95 % confidence interval, in the unit of the samples; `count` of them.
    `exact`: any further run would give the same, so it has no interval.
    """

    median: float
    low: float
    high: float
    count: int
    exact: bool = False

    @property
    def half_width(self) -> float:
        """Half of the interval's width, in the unit of the samples."""
        return (self.high - self.low) / 2

    @property
    def is_lopsided(self) -> bool:
        """Whether median ± half_width would misstate the interval, or reach below zero alone."""
        shorter, longer = sorted((self.median - self.low, self.high - self.median))
        moved = (longer - shorter) / 2 > MOVED_SHARE * abs(self.median)
        below_zero = self.median - self.half_width < 0 <= self.low
        return (longer > LOPSIDED * shorter and moved) or below_zero


def as_samples(values: Sequence[float] | npt.ArrayLike) -> Samples:
    """A flat float64 array; ValueError if it is empty or holds a value that is not finite."""
    samples = np.asarray(values, dtype=np.float64).ravel()
    if samples.size == 0:
        raise ValueError("a statistic needs at least one sample")
    if not np.isfinite(samples).all():
        raise ValueError("a statistic needs samples that are finite numbers")
    return samples


def bootstrap_medians(
    values: Sequence[float] | npt.ArrayLike, seed: int = 1, resamples: int = RESAMPLES
) -> Samples:
    """`resamples` medians of samples drawn from `values` with replacement (Efron 1979).

    A resample is n uniform positions in the sorted samples, and its median needs only the
    middle one or two of those in order: the k-th of n is Beta(k, n - k + 1), and the next one
    lies beyond it by a Beta(1, n - k) share of what is left. Exact, and the time does not grow
    with n.
    """
    random = np.random.default_rng(seed)
    samples = np.sort(as_samples(values))
    n = samples.size
    middle = (n + 1) // 2
    lower = random.beta(middle, n - middle + 1, size=resamples)
    medians = samples[np.minimum((lower * n).astype(np.int64), n - 1)]
    if n % 2 == 0:
        upper = lower + (1 - lower) * random.beta(1, n - middle, size=resamples)
        medians = (medians + samples[np.minimum((upper * n).astype(np.int64), n - 1)]) / 2
    return medians


def summarise(values: Sequence[float] | npt.ArrayLike, seed: int = 1) -> Summary:
    """The median of `values` with its 95 % bootstrap interval; one sample is its own interval."""
    samples = as_samples(values)
    median = float(np.median(samples))
    if samples.size == 1:
        return Summary(median, median, median, 1)
    low, high = np.percentile(bootstrap_medians(samples, seed), [2.5, 97.5])
    return Summary(median, float(low), float(high), int(samples.size))


def run_medians(runs: Sequence[Samples], seed: int = 1) -> Samples:
    """Resampled medians of samples that came in `runs`.

    From RUNS_LEAST runs on they are resamples of the runs' medians, else of all samples.
    """
    if len(runs) >= RUNS_LEAST:
        return bootstrap_medians([float(np.median(as_samples(run))) for run in runs], seed)
    return bootstrap_medians(np.concatenate(runs), seed)


def median_of(runs: Sequence[Samples]) -> float:
    """The median of all samples of all runs."""
    return float(np.median(as_samples(np.concatenate(runs))))


def interval_of(resampled: Samples, estimate: float) -> tuple[float, float]:
    """The 95 % interval of resampled figures, wide enough to hold their estimate."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return min(float(low), estimate), max(float(high), estimate)


def summarise_runs(runs: Sequence[Samples], seed: int = 1) -> Summary:
    """The median of all samples with its 95 % interval, by `run_medians`.

    With 3 to 6 runs that is the range of the runs' medians.
    """
    median = median_of(runs)
    low, high = interval_of(run_medians(runs, seed), median)
    return Summary(median, low, high, sum(run.size for run in runs))


def tail_of(runs: Sequence[Samples]) -> dict[str, float]:
    """PERCENTILES of the samples of all runs, as far as they are enough, and "max", the longest;
    empty if they are too few for any.
    """
    samples = np.concatenate(runs)
    found = {
        name: float(np.percentile(samples, share))
        for name, (share, least) in PERCENTILES.items()
        if samples.size >= least
    }
    return {**found, "max": float(samples.max())} if found else {}


def ratio_text(ratio: float, decimals: int) -> str:
    """A ratio with so many decimals. One to 0 has no figure, and an interval may have no end."""
    return f"> {RATIO_MOST:,}" if ratio > 0.999 * RATIO_MOST else f"{ratio:.{decimals}f}"


def ratio_decimals(ratio: Summary) -> int:
    """Two, or as many as tell a ratio that is near 1, or ends near it, from 1."""
    ends = min(abs(ratio.low - 1), abs(ratio.high - 1))
    return 2 if abs(ratio.median - 1) >= 0.05 and ends >= 0.005 else 4


def ratio_of_medians(over: Sequence[Samples], under: Sequence[Samples], seed: int = 1) -> Summary:
    """median(over) / median(under), both given by run, with the 95 % interval of independent
    bootstraps. A median of zero below the line counts as a RATIO_MOST-th of the one above it, and a
    resampled one as that part of the median: beyond any bound, and finite. Raises ValueError if
    neither median is above zero.
    """
    above, below = median_of(over), median_of(under)
    least = (below if below > 0 else above) / RATIO_MOST
    if least <= 0:
        raise ValueError("a ratio needs a median above zero")
    ratio = above / max(below, least)
    ratios = run_medians(over, seed) / np.maximum(run_medians(under, seed + 1), least)
    low, high = interval_of(ratios, ratio)
    return Summary(ratio, low, high, min(sum(run.size for run in runs) for runs in (over, under)))


def instability(summary: Summary, unit: str = "", calmer: bool = True) -> str | None:
    """A sentence that says that a figure is unstable and what to do, or None; `calmer`: a quieter
    machine would help.
    """
    if summary.count < SAMPLES_WISHED:
        return (
            f"only {summary.count} sample{'s' if summary.count != 1 else ''}: "
            f"run with --set repeats={SAMPLES_WISHED} or more iterations"
        )
    if summary.median == 0 or math.isclose(summary.low, summary.high):
        return None
    share = (summary.high - summary.low) / abs(summary.median)
    if share <= UNSTABLE_SHARE:
        return None
    around = f"{summary.median:.4g} {unit}".rstrip()
    advice = "raise repeats or iterations"
    if calmer:
        advice = f"close other programs, {advice}, or pin the placement with --set cpus=..."
    return f"the 95 % interval is {share:.0%} of the median {around}: {advice}"
