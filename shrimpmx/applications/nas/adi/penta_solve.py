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
OF_SPEED = ((0, slice(0, 3)), (1, slice(3, 4)), (2, slice(4, 5)))  # components that go with each
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
        self.convection, self.diffusion = convection, diffusion
        begin = cell.low[axis] + cell.inside[axis].start - cell.owned[axis].start - 1
        self.solution = rows_first(state.rhs, axis)
        rows = len(self.solution)
        dissipation = time_step * DISSIPATION * fourth_differences(state.points)
        self.dissipation = dissipation[begin : begin + rows]
        self.reduced = state.workspace(2 + rows, self.handed_on[1], speed.shape[1])
        self.reduced[2:, RIGHT] = rows_of_lines(state.rhs, axis)

    def eliminate(self, before: Array) -> Array:
        self.reduced[:2] = before
        for row, weights in enumerate(self.dissipation):
            far, near, here = self.reduced[row : row + 3]
            before_last, before, same, after, second_next = weights
            first = before - before_last * far[NEXT] - self.convection[row] - self.diffusion[row]
            pivot = same + 1 + 2 * self.diffusion[row + 1]
            pivot = 1 / (pivot - before_last * far[SECOND] - first * near[NEXT])
            here[NEXT] = after + self.convection[row + 2] - self.diffusion[row + 2]
            here[NEXT] -= first * near[SECOND]
            here[NEXT] *= pivot
            here[SECOND] = second_next * pivot
            right = here[RIGHT]
            right -= before_last * far[RIGHT]
            for speed, components in OF_SPEED:
                right[components] -= first[speed] * near[RIGHT][components]
                right[components] *= pivot[speed]
        return self.reduced[-2:]

    def substitute(self, after: Array) -> Array:
        near, far = after
        for reduced, solution in zip(self.reduced[:1:-1], self.solution[::-1], strict=True):
            here = reduced[RIGHT].copy()
            for speed, components in OF_SPEED:
                here[components] -= reduced[NEXT][speed] * near[components]
                here[components] -= reduced[SECOND][speed] * far[components]
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
