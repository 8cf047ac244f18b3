"""Predictions of unseen figures: each group in turn is left out of the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from shrimpmx.experiment.fit.measurements import Measurement
from shrimpmx.experiment.fit.predictor import Predictor
from shrimpmx.experiment.fit.profile import NORMAL_95
from shrimpmx.experiment.fit.simple import hockney, loggp
from shrimpmx.experiment.fit.solve import Solution, solve
from shrimpmx.experiment.fit.varied import Varied

FITTED, HOCKNEY, LOGGP = "fitted hosts", "Hockney", "LogGP"
PREDICTORS = (FITTED, HOCKNEY, LOGGP)


@dataclass(frozen=True)
class Prediction:
    """A figure that was left out, by each predictor; `interval`: the fitted hosts', 95 %."""

    measurement: Measurement
    by: Mapping[str, float]
    interval: tuple[float, float]

    @property
    def is_inside(self) -> bool:
        """Whether the measured figure is in the interval."""
        return self.interval[0] <= self.measurement.value <= self.interval[1]

    def error(self, predictor: str) -> float:
        """As a share of the measured figure."""
        return abs(self.by[predictor] / self.measurement.value - 1)


def groups_of(measurements: Sequence[Measurement]) -> list[str]:
    """Their groups, as they come."""
    return list(dict.fromkeys(one.group for one in measurements))


def without_each(
    predictor: Predictor,
    varied: Sequence[Varied],
    whole: Solution,
    progress: Callable[[str], Callable[[float], None]],
    folds: int = 0,
) -> dict[tuple[str, ...], Solution]:
    """By part of the groups, the solution of a fit without it, which begins at that of the `whole`;
    none if there is one group. With `folds` groups are left out together, in so many parts of them.
    """
    measurements = predictor.measurements
    return {
        part: solve(
            predictor,
            varied,
            [index for index, one in enumerate(measurements) if one.group not in part],
            progress(", ".join(part)),
            near=whole,
        )
        for part in parts_of(measurements, folds)
    }


def parts_of(measurements: Sequence[Measurement], folds: int = 0) -> list[tuple[str, ...]]:
    """The groups that are left out together: each alone, or in so many parts; none if there is one
    group.
    """
    groups = groups_of(measurements)
    if len(groups) < 2:
        return []
    count = min(folds or len(groups), len(groups))
    return [tuple(groups[first::count]) for first in range(count)]


def predictions_of(
    measurements: Sequence[Measurement], without: Mapping[tuple[str, ...], Solution]
) -> Iterator[Prediction]:
    """A prediction for each measurement, by the fit without its group."""
    for part, solution in without.items():
        known = [one for one in measurements if one.group not in part]
        simple = {HOCKNEY: hockney(known), LOGGP: loggp(known)}
        for index, one in enumerate(measurements):
            if one.group not in part:
                continue
            middle = solution.figures[index]
            width = NORMAL_95 * solution.figure_deviation(index, one.uncertainty)
            yield Prediction(
                one,
                {FITTED: float(np.exp(middle)), **{name: by(one) for name, by in simple.items()}},
                (float(np.exp(middle - width)), float(np.exp(middle + width))),
            )


def orders(predictions: Sequence[Prediction], predictor: str) -> tuple[int, int]:
    """Of pairs of figures of one metric and length under different settings that the measurements
    tell apart: how many, and how many of these orders the predictor keeps.
    """
    certain = kept = 0
    for one, other in combinations(predictions, 2):
        first, second = one.measurement, other.measurement
        alike = first.metric == second.metric and first.size_bytes == second.size_bytes
        apart = NORMAL_95 * np.hypot(first.uncertainty, second.uncertainty)
        if not alike or abs(np.log(first.value / second.value)) <= apart:
            continue
        certain += 1
        kept += (first.value > second.value) == (one.by[predictor] > other.by[predictor])
    return certain, kept
