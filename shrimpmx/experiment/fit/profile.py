"""The ends of costs' intervals, by the likelihood of measurements along the way to them.

A normal distribution has as wide an interval to both sides of a value. Yet many a figure depends on
a cost on one side only, as a rate on its slowest stage. So an end is moved away from the value
while the measurements there are more probable than at the end of a normal distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shrimpmx.experiment.fit.predictor import Matrix, Predictor, Vector
from shrimpmx.experiment.fit.varied import Varied, values_of

NORMAL_95 = 1.96
# An end is moved so many times at most, each time to at most this multiple of its distance (ours).
MOVES_MOST = 4
MOVE_MOST = 2.0

# Sum of squares by which costs, and the figures simulated with them, are improbable.
Improbability = Callable[[Vector, Vector], float]


def ends_of(
    predictor: Predictor,
    varied: Sequence[Varied],
    logs: Vector,
    covariance: Matrix,
    figures: Vector,
    improbability: Improbability | None,
) -> Matrix:
    """Of the 95 % interval of each cost, a row each, of logarithms, within its range. `figures` are
    the logarithms of those at the costs `logs`; without an `improbability` the ends are those of a
    normal distribution.
    """
    variances = np.diag(covariance)
    deviations = np.sqrt(variances)
    bounds = np.array([one.bounds for one in varied])
    # By cost and side, of how many deviations: as far as the cost's range goes, or less.
    most = np.abs(bounds - logs[:, None]) / deviations[:, None]
    reach = np.minimum(most, NORMAL_95)
    sides = np.array([-1.0, 1.0])
    # A deviation's way of each cost: with the others as it is most probable where figures change
    # as they do nearby, and alone where they have ceased to.
    ways = np.stack([(covariance / deviations).T, np.diag(deviations)])
    if improbability is not None:
        least = improbability(logs, figures)
        open_sides = [*zip(*np.nonzero(reach < most), strict=True)]
        for _ in range(MOVES_MOST):
            places = [
                np.clip(logs + sides[side] * reach[index, side] * way[index], *bounds.T)
                for index, side in open_sides
                for way in ways
            ]
            found = predictor.logs([values_of(varied, at) for at in places], range(len(figures)))
            rises = [improbability(*each) - least for each in zip(places, found, strict=True)]
            rises_least = np.min(np.reshape(rises, (-1, len(ways))), axis=1)
            moves = NORMAL_95 / np.sqrt(np.maximum(rises_least, 1e-9))
            for place, move in zip(open_sides, moves, strict=True):
                if move > 1.0:
                    reach[place] = min(reach[place] * min(move, MOVE_MOST), most[place])
            open_sides = [
                place
                for place, move in zip(open_sides, moves, strict=True)
                if move > 1.0 and reach[place] < most[place]
            ]
    ends: Matrix = logs[:, None] + sides * reach * deviations[:, None]
    return ends
