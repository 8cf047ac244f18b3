"""The costs that explain measurements together: the most probable ones, and how certain each is.

A figure's logarithm is normally distributed around the simulated one's. Its variance is that of its
measurement and, for what the model cannot say, one more that all figures share and that the
residuals give (Kennedy and O'Hagan 2001). The logarithm of a cost is normally distributed around
its value on the platform that the fit begins with, so wide that its public range is two standard
deviations to each side. The most probable costs are found by least squares, in several searches, as
figures are not smooth: each measures slopes anew, over shorter steps, and allows for the model's
error after the one before. Their distribution is taken as normal there (Laplace's approximation);
their intervals go further where the measurements are still as probable (profile.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from shrimpmx.errors import InputError
from shrimpmx.experiment.fit.predictor import Matrix, Predictor, Values, Vector
from shrimpmx.experiment.fit.profile import NORMAL_95, ends_of
from shrimpmx.experiment.fit.varied import Varied, values_of

# By so much a cost changes to each side for a derivative, search by search: figures move in steps
# where a frame comes before or behind the end of a poll, and wide steps reach across them (ours).
STEPS = (0.4, 0.2, 0.1)
# Searches go on while each gains so much, but so many at most (ours).
GAIN = 0.5
SEARCHES_MOST = 6
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
        """Whether the data tell a cost, rather than its range, nearby and up to its ends."""
        low, high = self.ends[index]
        deviation = max(self.deviations[index], (high - low) / (2 * NORMAL_95))
        return bool(deviation < DETERMINED * self.varied[index].deviation)

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

    Slopes are measured, then corrected by steps (Broyden 1965); `near` has those of more figures,
    and is so close that one search is enough.
    """
    measurements, every = predictor.measurements, range(len(predictor.measurements))
    wanted = np.array([np.log(measurements[index].value) for index in used])
    measured = np.array([measurements[index].uncertainty for index in used])
    middle = np.array([one.middle for one in varied])
    widths = np.array([one.deviation for one in varied])
    bounds = np.array([one.bounds for one in varied]).T
    fitted = _Fitted(list(used), wanted, middle, widths, bounds)

    def figures_at(at: Vector) -> Vector:
        return predictor.logs([values_of(varied, at)], every)[0]

    def improbability(at: Vector, figures: Vector, model: float) -> float:
        variances = measured**2 + model**2
        of_data = (figures[list(used)] - wanted) ** 2 / variances + np.log(variances)
        return float(np.sum(of_data) + np.sum(((at - middle) / widths) ** 2))

    model, logs = (near.model, near.logs) if near else (LEAST_MODEL, middle)
    least = np.inf
    for number in range(1 if near else SEARCHES_MOST):
        deviations = np.sqrt(measured**2 + model**2)
        begin = np.clip(logs, bounds[0] + 1e-9, bounds[1] - 1e-9)
        step = STEPS[min(number, len(STEPS) - 1)]
        known = near.slopes if near else slopes_of(predictor, varied, begin, every, step)
        slopes = _Slopes(figures_at, known, begin)

        found = _searched(slopes, begin, fitted, deviations, progress)
        figures = figures_at(found.x)
        error = _model_deviation(figures[list(used)] - wanted, measured, found.jac)
        reached = improbability(found.x, figures, error)
        gained = least - reached
        if gained > 0:
            least, logs, model = reached, found.x, error
        if gained < GAIN:
            break
    figures = figures_at(logs)
    final = slopes(logs) if near else known  # the last search hardly moved
    deviations = np.sqrt(measured**2 + model**2)
    weighted = final[list(used)] / deviations[:, None]
    covariance = np.linalg.inv(weighted.T @ weighted + np.diag(widths**-2.0)).astype(np.float64)
    by = partial(improbability, model=model) if profiled and near is None else None
    ends = ends_of(predictor, varied, logs, covariance, figures, by)
    return Solution(varied, logs, covariance, model, figures, final, ends)


@dataclass(frozen=True)
class _Fitted:
    """The logarithms of the figures `used` as they are `wanted`, and the costs' ranges."""

    used: list[int]
    wanted: Vector
    middle: Vector
    widths: Vector
    bounds: Matrix


def _searched(
    slopes: _Slopes,
    begin: Vector,
    fitted: _Fitted,
    deviations: Vector,
    progress: Callable[[float], None],
) -> Any:
    """SciPy's result of one search that begins at some costs."""

    def residuals(at: Vector) -> Vector:
        figures = slopes.figures_at(at)[fitted.used]
        progress(float(np.median(np.abs(np.expm1(figures - fitted.wanted)))))
        of_costs = (at - fitted.middle) / fitted.widths
        return np.concatenate([(figures - fitted.wanted) / deviations, of_costs])

    def jacobian(at: Vector) -> Matrix:
        of_figures = slopes(at)[fitted.used] / deviations[:, None]
        return np.vstack([of_figures, np.diag(1 / fitted.widths)])

    return least_squares_of_scipy()(
        residuals,
        begin,
        jac=jacobian,
        bounds=fitted.bounds,
        xtol=TOLERANCE,
        ftol=TOLERANCE,
        max_nfev=EVALUATIONS_MOST,
    )


class _Slopes:
    """Slopes of the figures along a search that begins `at` some costs, where they are `known`."""

    def __init__(self, figures_at: Callable[[Vector], Vector], known: Matrix, at: Vector) -> None:
        self.figures_at, self._slopes, self._at = figures_at, known, at
        self._figures = figures_at(at)

    def __call__(self, at: Vector) -> Matrix:
        """Those at costs whose figures are known."""
        step = at - self._at
        if np.any(step):
            figures = self.figures_at(at)
            missed = figures - self._figures - self._slopes @ step
            self._slopes = self._slopes + np.outer(missed, step) / (step @ step)
            self._at, self._figures = at, figures
        return self._slopes


def slopes_of(
    predictor: Predictor,
    varied: Sequence[Varied],
    at: Vector,
    which: Sequence[int],
    step: float = STEPS[-1],
) -> Matrix:
    """Slopes of figures by costs, of their logarithms: a row for each figure. A cost changes by a
    step to each side, as far as its range goes.
    """
    low, high = np.array([one.bounds for one in varied]).T
    below, above = np.maximum(at - step, low), np.minimum(at + step, high)
    ends = [
        np.where(np.arange(len(varied)) == index, side, at)
        for side in (below, above)
        for index in range(len(varied))
    ]
    found = predictor.logs([values_of(varied, each) for each in ends], which)
    before, behind = np.array(found).reshape(2, len(varied), -1)
    slopes: Matrix = ((behind - before) / (above - below)[:, None]).T
    return slopes


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
