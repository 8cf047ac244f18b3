"""What the runs of a setting gave, and which settings their figures cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shrimpmx.results.metrics import METRICS
from shrimpmx.results.statistics import RESAMPLES, Samples, bootstrap_medians

# The figures to choose by, and the metrics that they are.
FIGURES = {"time": "run_time", "cpu": "run_cpu_time", "interrupts": "run_interrupts"}
# From so many runs on a setting shows its own noise; with fewer it has that of all (ours).
OWN_NOISE = 5
# Settings that differ by less are as good as each other: the figures of one and the same setting
# differ by that from one exploration to the next (ours).
ALIKE = 1.02
# How likely a setting is at least as good as the best that other figures decide between (ours).
LIKELY = 0.5
# The lower end of a 95 % interval.
LOW_END = 2.5


@dataclass(frozen=True)
class Measured:
    """A setting: by figure, a sample of each run; and why it failed, "" if it did not."""

    samples: Mapping[str, Samples] = field(default_factory=dict)
    failed: str = ""

    @property
    def runs(self) -> int:
        """How often it ran to its end."""
        return min((samples.size for samples in self.samples.values()), default=0)

    @property
    def usable(self) -> bool:
        """Whether it has figures, and did not fail."""
        return self.runs > 0 and not self.failed

    @property
    def varies(self) -> bool:
        """Whether any figure of a run is another one than that of the others."""
        return any(np.ptp(samples) > 0 for samples in self.samples.values())

    def median(self, figure: str) -> float:
        """The median of a figure over the runs."""
        return float(np.median(self.samples[figure]))


def measured_of(runs: Iterable[Mapping[str, Any]]) -> Measured:
    """A setting from the runs that a sweep keeps; times are those of the emulated platform."""
    runs = list(runs)
    done = [run for run in runs if "failed" not in run and "impossible" not in run]
    reasons = [run.get("failed") or run["impossible"] for run in runs if run not in done]
    samples = {}
    for figure, name in FIGURES.items():
        found = [run["metrics"][name] for run in done]
        missing = [metric["unavailable"] for metric in found if "unavailable" in metric]
        reasons += missing
        scale = METRICS[name].scale(done[0]["time_dilation"]) if done else 1.0
        values = [value for metric in found for value in metric.get("samples", ())]
        samples[figure] = np.array(values, dtype=np.float64) * scale
    return Measured(samples, reasons[0] if reasons else "")


class Comparison:
    """The medians of one figure of several settings, and what they could as well have been.

    Medians are resampled: those of a setting with OWN_NOISE runs by the bootstrap of its own
    runs; with fewer by as many deviations drawn from those of all settings that ran twice, since
    a few runs do not tell how much they scatter. `settings` are usable.
    """

    def __init__(self, settings: Mapping[int, Measured], figure: str, seed: int = 1) -> None:
        self.medians = {index: each.median(figure) for index, each in settings.items()}
        self.leader = min(self.medians, key=lambda index: self.medians[index])
        noise = _deviations([each.samples[figure] for each in settings.values()])
        # Without any repetition nothing tells how sure a figure is.
        self.known = noise.size > 0
        self._resampled = {
            index: _resampled(each.samples[figure], noise, seed + index)
            for index, each in settings.items()
        }
        self._least = np.min(list(self._resampled.values()), axis=0)

    def tied(self) -> list[int]:
        """The leader, and the settings that cannot be told apart from it: the interval of their
        ratio to it reaches down to ALIKE.
        """
        least = self._resampled[self.leader]
        return [
            index
            for index, medians in self._resampled.items()
            if index == self.leader or np.percentile(medians - ALIKE * least, LOW_END) <= 0
        ]

    def as_good(self) -> list[int]:
        """The leader, and the settings that are more likely than not within ALIKE of the least
        figure; by medians where no noise is known.
        """
        return [
            index
            for index in self._resampled
            if index == self.leader or self.chance([index], ALIKE) >= LIKELY
        ]

    def chance(self, indices: Iterable[int], within: float = 1.0) -> float:
        """The share of resamples, 0 to 1, in which one of these settings has the least figure of
        all, or at most `within` times that.
        """
        best = np.min([self._resampled[index] for index in indices], axis=0)
        return float(np.mean(best <= within * self._least))


def _deviations(samples: Iterable[Samples]) -> Samples:
    """Relative deviations of runs from the medians of their settings, widened by what the median
    of few runs takes from them.
    """
    parts = [np.empty(0)]
    for values in samples:
        median = float(np.median(values))
        if values.size > 1 and median > 0:
            widening = np.sqrt(values.size / (values.size - 1))
            parts.append((values - median) / median * widening)
    return np.concatenate(parts)


def _resampled(values: Samples, noise: Samples, seed: int) -> Samples:
    """RESAMPLES medians that a setting could as well have had."""
    median = float(np.median(values))
    if values.size >= OWN_NOISE:
        return bootstrap_medians(values, seed)
    if noise.size == 0:
        return np.full(RESAMPLES, median)
    drawn = np.random.default_rng(seed).choice(noise, (RESAMPLES, values.size))
    medians: Samples = median * (1 + np.median(drawn, axis=1))
    return medians
