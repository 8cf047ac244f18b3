"""Medians, bootstrap confidence intervals and paired ratios of raw samples.

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


@dataclass(frozen=True)
class Summary:
    """Median and its 95 % confidence interval, in the unit of the samples; `count` of them."""

    median: float
    low: float
    high: float
    count: int

    @property
    def half_width(self) -> float:
        """Half of the interval's width, in the unit of the samples."""
        return (self.high - self.low) / 2


def as_samples(values: Sequence[float] | npt.ArrayLike) -> Samples:
    """A flat float64 array; ValueError if it is empty or holds a value that is not finite."""
    samples = np.asarray(values, dtype=np.float64).ravel()
    if samples.size == 0:
        raise ValueError("a statistic needs at least one sample")
    if not np.isfinite(samples).all():
        raise ValueError("a statistic needs finite samples")
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


def ratio_of_medians(
    over: Sequence[float] | npt.ArrayLike, under: Sequence[float] | npt.ArrayLike, seed: int = 1
) -> Summary:
    """median(over) / median(under) with the 95 % interval of independent bootstraps.

    Raises ValueError if the median of `under` is not above zero.
    """
    above, below = as_samples(over), as_samples(under)
    if float(np.median(below)) <= 0:
        raise ValueError("a ratio needs a median above zero below the line")
    ratios = bootstrap_medians(above, seed) / np.maximum(
        bootstrap_medians(below, seed + 1), np.finfo(np.float64).tiny
    )
    low, high = np.percentile(ratios, [2.5, 97.5])
    count = min(above.size, below.size)
    return Summary(float(np.median(above) / np.median(below)), float(low), float(high), count)


def paired_ratio(
    over: Sequence[float] | npt.ArrayLike, under: Sequence[float] | npt.ArrayLike, seed: int = 1
) -> Summary:
    """The median of over[i] / under[i], for measurements that were taken in pairs.

    Raises ValueError if the lengths differ or a divisor is not above zero.
    """
    above, below = as_samples(over), as_samples(under)
    if above.size != below.size:
        raise ValueError(f"pairs need equal lengths, not {above.size} and {below.size}")
    if float(below.min()) <= 0:
        raise ValueError("a ratio needs values above zero below the line")
    return summarise(above / below, seed)


def instability(summary: Summary, unit: str = "") -> str | None:
    """A sentence that says that a figure is unstable and what to do, or None."""
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
    return (
        f"the 95 % interval is {share:.0%} of the median {around}: close other programs, "
        "raise repeats or iterations, or pin the placement with --set cpus=..."
    )
