"""The costs that explain measurements together: the most probable ones, and how certain each is.

A figure's logarithm is normally distributed around the simulated one's. Its variance is that of its
measurement and, for what the model cannot say, one more that all figures share and that the
residuals give (Kennedy and O'Hagan 2001). The logarithm of a cost is normally distributed around
its value on the platform that the fit begins with, so wide that its public range is two standard
deviations to each side. The most probable costs are found by least squares, and their distribution
is taken as normal there (Laplace's approximation); their intervals go further where the
measurements are still as probable (profile.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from shrimpmx.errors import InputError
from shrimpmx.experiment.fit.predictor import Matrix, Predictor, Values, Vector
from shrimpmx.experiment.fit.profile import ends_of
from shrimpmx.experiment.fit.varied import Varied, values_of

# By so much a cost changes for a derivative: figures move in steps where a frame comes before or
# behind the end of a poll (ours).
STEP = 0.1
# The least standard deviation of the model's own error (ours).
LEAST_MODEL = 0.005
# Searches end when costs change by less (ours).
TOLERANCE = 0.003
EVALUATIONS_MOST = 25
# A cost whose standard deviation the data reduce to less than this share is determined (ours).
DETERMINED = 0.5


@dataclass(frozen=True)
class Solution:
    """`logs`: of the costs; `covariance` theirs; `model`: the standard deviation of what the model
    cannot say, as a share; `slopes`: of the figures' logarithms by the costs'; `figures`: the
    logarithms of all simulated figures there; `ends`: of the intervals, a row for each cost.
    """

    varied: Sequence[Varied]
    logs: Vector
    covariance: Matrix
    model: float
    figures: Vector
    slopes: Matrix
    ends: Matrix

    @property
    def values(self) -> Values:
        """The costs by key."""
        return values_of(self.varied, self.logs)

    @property
    def deviations(self) -> Vector:
        """Of the costs' logarithms."""
        return np.sqrt(np.diag(self.covariance))

    def interval(self, index: int) -> tuple[float, float]:
        """The 95 % interval of a cost, within its range."""
        low, high = np.exp(self.ends[index])
        return float(low), float(high)

    def is_determined(self, index: int) -> bool:
        """Whether the data tell a cost, rather than its range."""
        return bool(self.deviations[index] < DETERMINED * self.varied[index].deviation)

    def draws(self, count: int, seed: int) -> Matrix:
        """So many sets of costs from their distribution, a row each, within their ranges."""
        drawn = np.random.default_rng(seed).multivariate_normal(self.logs, self.covariance, count)
        low, high = np.array([one.bounds for one in self.varied]).T
        return np.exp(np.clip(drawn, low, high))

    def figure_deviation(self, index: int, uncertainty: float) -> float:
        """Of the logarithm of a figure that is measured with that uncertainty."""
        slope = self.slopes[index]
        of_costs = float(slope @ self.covariance @ slope)
        return float(np.sqrt(of_costs + self.model**2 + uncertainty**2))


def solve(
    predictor: Predictor,
    varied: Sequence[Varied],
    used: Sequence[int],
    progress: Callable[[float], None] = lambda _error: None,
    near: Solution | None = None,
    profiled: bool = True,
) -> Solution:
    """The costs that explain the measurements `used` best; `progress` is told the median error.

    Slopes are measured, then corrected by steps (Broyden 1965); `near` has those of more figures.
    """
    measurements, every = predictor.measurements, range(len(predictor.measurements))
    wanted = np.array([np.log(measurements[index].value) for index in used])
    measured = np.array([measurements[index].uncertainty for index in used])
    middle = np.array([one.middle for one in varied])
    widths = np.array([one.deviation for one in varied])
    bounds = np.array([one.bounds for one in varied]).T
    model, logs = (near.model, near.logs) if near else (LEAST_MODEL, middle)
    # The residuals of the first search are the model's error; the second search allows for it.
    for is_last in (True,) if near else (False, True):
        deviations = np.sqrt(measured**2 + model**2)
        logs = np.clip(logs, bounds[0] + 1e-9, bounds[1] - 1e-9)
        slopes = _Slopes(predictor, varied, every, near.slopes if near else None, logs)

        def residuals(at: Vector, deviations: Vector = deviations) -> Vector:
            figures = predictor.logs([values_of(varied, at)], every)[0][list(used)]
            progress(float(np.median(np.abs(np.expm1(figures - wanted)))))
            return np.concatenate([(figures - wanted) / deviations, (at - middle) / widths])

        def jacobian(
            at: Vector, deviations: Vector = deviations, slopes: _Slopes = slopes
        ) -> Matrix:
            return np.vstack([slopes(at)[list(used)] / deviations[:, None], np.diag(1 / widths)])

        found = least_squares_of_scipy()(
            residuals,
            logs,
            jac=jacobian,
            bounds=bounds,
            xtol=TOLERANCE,
            ftol=TOLERANCE,
            max_nfev=EVALUATIONS_MOST,
        )
        logs = found.x
        (figures,) = predictor.logs([values_of(varied, logs)], every)
        if not is_last or near:
            model = _model_deviation(figures[list(used)] - wanted, measured, found.jac)
    final = slopes(logs) if near else slopes_of(predictor, varied, logs, every)
    deviations = np.sqrt(measured**2 + model**2)
    weighted = final[list(used)] / deviations[:, None]
    covariance = np.linalg.inv(weighted.T @ weighted + np.diag(widths**-2.0)).astype(np.float64)

    def improbability(at: Vector, figures: Vector) -> float:
        parts = (figures[list(used)] - wanted) / deviations, (at - middle) / widths
        return float(np.sum(np.concatenate(parts) ** 2))

    by = improbability if profiled and near is None else None
    ends = ends_of(predictor, varied, logs, covariance, figures, by)
    return Solution(varied, logs, covariance, model, figures, final, ends)


class _Slopes:
    """Slopes of the figures `which` along a search that begins `at` some costs, with those `known`
    there, or measured ones.
    """

    def __init__(
        self,
        predictor: Predictor,
        varied: Sequence[Varied],
        which: Sequence[int],
        known: Matrix | None,
        at: Vector,
    ) -> None:
        self._predictor, self._varied, self._which, self._at = predictor, varied, which, at
        self._figures = self._of(at)
        self._slopes = slopes_of(predictor, varied, at, which) if known is None else known

    def __call__(self, at: Vector) -> Matrix:
        """Those at costs whose figures are known."""
        step = at - self._at
        if np.any(step):
            figures = self._of(at)
            missed = figures - self._figures - self._slopes @ step
            self._slopes = self._slopes + np.outer(missed, step) / (step @ step)
            self._at, self._figures = at, figures
        return self._slopes

    def _of(self, at: Vector) -> Vector:
        return self._predictor.logs([values_of(self._varied, at)], self._which)[0]


def slopes_of(
    predictor: Predictor, varied: Sequence[Varied], at: Vector, which: Sequence[int]
) -> Matrix:
    """Slopes of figures by costs, of their logarithms: a row for each figure."""
    steps = [
        STEP if log + STEP <= one.bounds[1] else -STEP for one, log in zip(varied, at, strict=True)
    ]
    moved = [at + step * (np.arange(len(varied)) == index) for index, step in enumerate(steps)]
    here, *there = predictor.logs([values_of(varied, each) for each in (at, *moved)], which)
    return np.array([(each - here) / step for each, step in zip(there, steps, strict=True)]).T


def _model_deviation(residuals: Vector, measured: Vector, jacobian: Matrix) -> float:
    """Of what remains beside the measurements' own uncertainty. Each cost that the data determine
    takes one of the residuals' degrees of freedom."""
    of_data = jacobian[: len(residuals)]
    spread = np.linalg.inv(jacobian.T @ jacobian)
    taken = float(np.trace(of_data @ spread @ of_data.T))
    left = max(1.0, len(residuals) - taken)
    more = float(np.sum(residuals**2)) / left - float(np.mean(measured**2))
    return float(np.sqrt(max(LEAST_MODEL**2, more)))


def least_squares_of_scipy() -> Callable[..., Any]:
    """The function; InputError if SciPy is not installed."""
    try:
        from scipy.optimize import least_squares
    except ModuleNotFoundError as error:
        raise InputError("fit needs SciPy: install shrimpmx[fit]") from error
    return cast(Callable[..., Any], least_squares)
