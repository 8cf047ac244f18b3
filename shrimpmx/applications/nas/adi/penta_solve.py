"""SP's lines: scalar pentadiagonal equations.

RNR-94-007, chapter 3. In characteristic variables an axis's implicit operator is one of scalars, in
which three components are convected with the speed u of the gas, one with u + c and one with u - c,
c that of sound. Dissipation is implicit too, and couples a point with two on either side.
"""

from __future__ import annotations

import numpy as np

from shrimpmx.applications.nas.adi.lines import Lines, rows_of_lines
from shrimpmx.applications.nas.exact_solution import C1345, COMPONENTS, Array
from shrimpmx.applications.nas.flow.cell import widened
from shrimpmx.applications.nas.flow.right_hand_side import DIFFUSION, DISSIPATION
from shrimpmx.applications.nas.flow.state import CellState, rows_first

SPEEDS = 3
# Speeds, and the components that go with them: three with the first one, one with each other.
OF_SPEED = ((slice(0, 1), slice(0, 3)), (slice(1, 3), slice(3, 5)))
NEXT, SECOND = slice(0, SPEEDS), slice(SPEEDS, 2 * SPEEDS)
RIGHT = slice(2 * SPEEDS, 2 * SPEEDS + COMPONENTS)


class PentadiagonalLines(Lines):
    """By row and line, after the elimination: for each speed the factors of the next and the second
    next row's solution, and for each component the right-hand side less which they are the row's.
    They stand in `reduced`, (2 + rows, 3 + 3 + 5, lines), behind two rows of the part before."""

    handed_on = (2, 2 * SPEEDS + COMPONENTS)
    handed_back = (2, COMPONENTS)

    def __init__(self, state: CellState, axis: int, time_step: float) -> None:
        cell, scale = state.cell, state.points - 1
        box = widened(cell.inside, axis, 1)
        speed = rows_of_lines(state.gas.velocity[axis, *box], axis)
        sound = rows_of_lines(state.gas.sound[box], axis)
        volume = rows_of_lines(state.gas.inverse_density[box], axis)
        diffusion = time_step * scale**2 * (DIFFUSION[axis] + C1345 * volume[:, None])
        convection = np.stack((speed, speed + sound, speed - sound), axis=1)
        convection *= time_step * scale / 2
        begin = cell.low[axis] + cell.inside[axis].start - cell.owned[axis].start - 1
        self.solution = rows_first(state.rhs, axis)
        rows = len(self.solution)
        dissipation = time_step * DISSIPATION * fourth_differences(state.points)
        dissipation = dissipation[begin : begin + rows]
        _, before, same, after, _ = dissipation.T[..., None, None]
        self.far = dissipation[:, ::4].tolist()  # of the rows two before and two behind
        self.before = before - convection[:-2] - diffusion[:-2]
        self.same = same + 1 + 2 * diffusion[1:-1]
        self.reduced = state.workspace(2 + rows, self.handed_on[1], speed.shape[1])
        np.subtract(convection[2:] + after, diffusion[2:], out=self.reduced[2:, NEXT])
        self.reduced[2:, RIGHT] = rows_of_lines(state.rhs, axis)

    def eliminate(self, before: Array) -> Array:
        self.reduced[:2] = before
        for row, (two_before, two_behind) in enumerate(self.far):
            far, near, here = self.reduced[row : row + 3]
            first, right = self.before[row], here[RIGHT]
            first -= two_before * far[NEXT]
            pivot = 1 / (self.same[row] - two_before * far[SECOND] - first * near[NEXT])
            here[NEXT] -= first * near[SECOND]
            here[NEXT] *= pivot
            np.multiply(pivot, two_behind, out=here[SECOND])
            right -= two_before * far[RIGHT]
            for speeds, components in OF_SPEED:
                right[components] -= first[speeds] * near[RIGHT][components]
                right[components] *= pivot[speeds]
        return self.reduced[-2:]

    def substitute(self, after: Array) -> Array:
        near, far = after
        for reduced, solution in zip(self.reduced[:1:-1], self.solution[::-1], strict=True):
            here = reduced[RIGHT]
            for speeds, components in OF_SPEED:
                here[components] -= reduced[NEXT][speeds] * near[components]
                here[components] -= reduced[SECOND][speeds] * far[components]
            solution[:] = here.reshape(solution.shape)
            near, far = here, near
        return np.stack((near, far))


def fourth_differences(points: int) -> Array:
    """By point off the boundary the weights of the five around it, (points - 2, 5): those of
    the second difference, at the boundary 0, of the second difference."""
    weights = np.tile((1.0, -4.0, 6.0, -4.0, 1.0), (points - 2, 1))
    weights[0], weights[-1] = (0, 0, 5, -4, 1), (1, -4, 5, 0, 0)
    weights[1, 0] = weights[-2, -1] = 0
    return weights
