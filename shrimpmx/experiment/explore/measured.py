"""What the runs of a setting gave, and which settings their figures cannot tell apart: their
order, and their frontier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shrimpmx.experiment.outcome import PROGRAM
from shrimpmx.results.metrics import METRICS
from shrimpmx.results.statistics import RESAMPLES, Samples, bootstrap_medians

# The figures to choose by, and the metrics that each one adds up.
FIGURES = {
    "time": ("run_time",),
    "cpu": ("run_cpu_time", "run_handler_cpu_time"),
    "interrupts": ("run_interrupts",),
}
# What tables show beside them.
RANKS_CPU, HANDLERS_CPU, SHARE = PARTS = ("run_cpu_time", "run_handler_cpu_time", "work_share")
# From so many runs on a setting shows its own noise; with fewer it has that of all (ours).
OWN_NOISE = 5
# Until so many settings have run twice, or the runs of fewer are as many, the noise of all is not
# known (ours).
AGAIN_LEAST = 4
NOISE_LEAST = 2 * AGAIN_LEAST
# Settings that differ by less are as good as each other: the figures of one and the same setting
# differ by that from one exploration to the next (ours).
ALIKE = 1.02
# What is said to be so has at least this probability, by the resamples.
SURE = 0.95
# How likely a setting is at least as good as the best that other figures decide between (ours).
LIKELY = 0.5


@dataclass(frozen=True)
class Measured:
    """A setting: by figure, a sample of each run; and why it failed, "" if it did not. `exact`: its
    runs are simulated and draw nothing, so all of them give these figures; `drawn`: the parameters
    that they draw, the program among them once its runs differ. `is_program`: it may draw by
    itself. `marked`: the program has marked what counts.
    """

    samples: Mapping[str, Samples] = field(default_factory=dict)
    failed: str = ""
    exact: bool = False
    drawn: tuple[str, ...] = ()
    is_program: bool = False
    marked: bool = False

    @property
    def runs(self) -> int:
        """How often it ran to its end."""
        return min((self.samples[figure].size for figure in FIGURES if self.samples), default=0)

    @property
    def usable(self) -> bool:
        """Whether it has figures, and did not fail."""
        return self.runs > 0 and not self.failed

    @property
    def varies(self) -> bool:
        """Whether one run gave other figures than another."""
        return _vary(self.samples)

    def median(self, figure: str) -> float:
        """The median of a figure over the runs."""
        return float(np.median(self.samples[figure]))


def measured_of(runs: Iterable[Mapping[str, Any]]) -> Measured:
    """A setting from the runs that a sweep keeps; times are those of the emulated platform."""
    runs = list(runs)
    done = [run for run in runs if "failed" not in run and "impossible" not in run]
    reasons = [run.get("failed") or run["impossible"] for run in runs if run not in done]
    metrics = {}
    for name in dict.fromkeys([name for added in FIGURES.values() for name in added] + [*PARTS]):
        found = [run["metrics"][name] for run in done]
        reasons += [metric["unavailable"] for metric in found if "unavailable" in metric]
        scale = METRICS[name].scale(done[0]["time_dilation"]) if done else 1.0
        values = [value for metric in found for value in metric.get("samples", ())]
        metrics[name] = np.array(values, dtype=np.float64) * scale
    if reasons:
        return Measured(failed=reasons[0])
    samples = {part: metrics[part] for part in PARTS}
    for figure, added in FIGURES.items():
        samples[figure] = np.sum([metrics[name] for name in added], axis=0)
    simulated = bool(done) and all(run.get("drawn") is not None for run in done)
    # That the program itself draws nothing is taken for granted until its runs differ.
    names = dict.fromkeys(name for run in done for name in run.get("drawn") or ())
    drawn = tuple(name for name in names if name != PROGRAM or _vary(samples))
    return Measured(
        samples,
        exact=simulated and not drawn and not _vary(samples),
        drawn=drawn,
        is_program=PROGRAM in names,
        marked=any(run.get("marked") for run in done),
    )


def _vary(samples: Mapping[str, Samples]) -> bool:
    return any(values.size > 0 and np.ptp(values) > 0 for values in samples.values())


def believed(settings: Mapping[int, Measured]) -> dict[int, Measured]:
    """The settings, none of them exact once the program has shown that it draws by itself."""
    if not any(PROGRAM in each.drawn for each in settings.values()):
        return dict(settings)
    return {
        index: replace(each, exact=False, drawn=tuple(dict.fromkeys((*each.drawn, PROGRAM))))
        for index, each in settings.items()
    }


def all_exact(settings: Iterable[Measured]) -> bool:
    """Whether there are settings, and no further run of any would give another figure."""
    settings = list(settings)
    return bool(settings) and all(each.exact for each in settings)


class Comparison:
    """The medians of one figure of several settings, and what they could as well have been.

    Medians are resampled: those of a setting with OWN_NOISE runs by the bootstrap of its own
    runs; with fewer by as many deviations drawn from those of all settings that ran twice, since
    a few runs do not tell how much they scatter. Exact ones are what they are. `settings` are
    usable.
    """

    def __init__(self, settings: Mapping[int, Measured], figure: str, seed: int = 1) -> None:
        self.medians = {index: each.median(figure) for index, each in settings.items()}
        self.leader = min(self.medians, key=lambda index: self.medians[index])
        noise = _deviations([each.samples[figure] for each in settings.values()])
        # Without repetitions nothing tells how sure a figure is.
        self.known = noise.size >= NOISE_LEAST or all(
            each.exact or each.runs >= OWN_NOISE for each in settings.values()
        )
        self._resampled = {
            index: _resampled(each, figure, noise, seed + index) for index, each in settings.items()
        }
        self._least = np.min(list(self._resampled.values()), axis=0)

    def contenders(self) -> list[int]:
        """The leader, and the settings that are not surely worse than it by more than ALIKE; all
        where the noise is not known.
        """
        return [index for index in self.medians if not self.is_less(self.leader, index, ALIKE)]

    def are_alike(self, indices: Iterable[int]) -> bool:
        """Whether all of these are surely within ALIKE of the leader."""
        least = self._resampled[self.leader]
        return self.known and all(
            index == self.leader or float(np.mean(self._resampled[index] <= ALIKE * least)) >= SURE
            for index in indices
        )

    def is_less(self, one: int, other: int, by: float) -> bool:
        """Whether the figure of one is surely less than that of another one by more than `by`."""
        if one == other or not self.known:
            return False
        is_less = by * self._resampled[one] < self._resampled[other]
        return float(np.mean(is_less)) >= SURE

    def as_good(self) -> list[int]:
        """The leader, and the settings that are more likely than not within ALIKE of the least
        figure; by medians where no noise is known.
        """
        if not self.known:
            most = ALIKE * self.medians[self.leader]
            return [index for index, median in self.medians.items() if median <= most]
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
        if values.size > 1:
            widening = np.sqrt(values.size / (values.size - 1))
            parts.append((values - median) / (median or 1.0) * widening)
    return np.concatenate(parts)


def _resampled(setting: Measured, figure: str, noise: Samples, seed: int) -> Samples:
    """RESAMPLES medians that a setting could as well have had."""
    values, median = setting.samples[figure], setting.median(figure)
    if setting.exact or (values.size < OWN_NOISE and noise.size == 0):
        return np.full(RESAMPLES, median)
    if values.size >= OWN_NOISE:
        return bootstrap_medians(values, seed)
    drawn = np.random.default_rng(seed).choice(noise, (RESAMPLES, values.size))
    medians: Samples = median * (1 + np.median(drawn, axis=1))
    return medians


# What to explore for, and the figures that decide, one where those before it cannot.
OBJECTIVES = {
    "time": ("time", "cpu", "interrupts"),
    "cpu": ("cpu", "time", "interrupts"),
    "interrupts": ("interrupts", "time", "cpu"),
}
# Who stands on the frontier is better by more than this, and by more than noise (ours).
BETTER = 1.01


def ranked(settings: Mapping[int, Measured], figures: Sequence[str], seed: int = 1) -> list[int]:
    """The settings, all usable, best first.

    Those that are as good as the best by the first figure come first, in their order by the
    figures behind it; the others follow by their medians.
    """
    if len(settings) < 2 or not figures:
        return list(settings)
    compared = Comparison(settings, figures[0], seed)
    as_good = compared.as_good()
    rest = sorted(settings.keys() - as_good, key=lambda index: (compared.medians[index], index))
    best = {index: settings[index] for index in sorted(as_good, key=compared.medians.__getitem__)}
    return ranked(best, figures[1:], seed) + rest


def deciding(settings: Mapping[int, Measured], figures: Sequence[str], seed: int = 1) -> str:
    """The figure that puts one of the settings in front of all others in ranked(), which those
    before it do not; "" if none does.
    """
    left = settings
    for figure in figures:
        left = {index: left[index] for index in Comparison(left, figure, seed).as_good()}
        if len(left) == 1:
            return figure
    return ""


def frontier(settings: Mapping[int, Measured], order: Sequence[int]) -> list[int]:
    """The Pareto frontier as far as it is sure: each setting on it is surely better than every
    other one on it in some figure, and no setting surely beats it in one and loses in none. Of
    those that are alike in all the first one by `order` stands for all; the first of all is on it.
    """
    compared = [Comparison(settings, figure) for figure in FIGURES]

    def is_better(one: int, other: int) -> bool:
        return any(each.is_less(one, other, BETTER) for each in compared)

    def is_beaten(index: int, others: Sequence[int]) -> bool:
        return any(is_better(other, index) and not is_better(index, other) for other in others)

    found: list[int] = []
    for index in order:
        stays = index == order[0] or not is_beaten(index, order)
        if stays and all(is_better(index, other) for other in found):
            found.append(index)
    return [index for index in order if index in found]
