"""BT's lines: block-tridiagonal equations, of blocks of 5 by 5.

RNR-94-007, chapter 3. Along an axis the implicit operator is I + h (D F - D² G), with the Jacobians
F of the fluxes and G of what is diffused: so each point depends on those before and after it.
"""

from __future__ import annotations

import numpy as np

from shrimpmx.applications.nas.adi.lines import Lines, rows_of_lines
from shrimpmx.applications.nas.exact_solution import C1, C2, C3C4, C1345, COMPONENTS, Array
from shrimpmx.applications.nas.flow.cell import widened
from shrimpmx.applications.nas.flow.right_hand_side import DIFFUSION
from shrimpmx.applications.nas.flow.state import CellState, rows_first


class BlockLines(Lines):
    """By row and line a block C and a vector r: after the elimination the solution of a row is r
    less C times that of the next row. Both stand in `upper`, (rows, 5, 5 + 1, lines)."""

    handed_on = (COMPONENTS, COMPONENTS + 1)
    handed_back = (COMPONENTS,)
    sends_room = True

    def __init__(self, state: CellState, axis: int, time_step: float) -> None:
        self.axis = axis
        scale = state.points - 1
        self.convection, self.diffusion = time_step * scale / 2, time_step * scale**2
        box = widened(state.cell.inside, axis, 1)
        self.states = rows_of_lines(state.u[:, *box], axis)
        self.solution = rows_first(state.rhs, axis)
        lines = self.states.shape[-1]
        self.upper = state.workspace(len(self.solution), *self.handed_on, lines)
        self.upper[:, :, -1] = rows_of_lines(state.rhs, axis)
        # F and G of three rows in turn; elements that are always 0 are never written.
        self.jacobians = np.zeros((3, 2, COMPONENTS, COMPONENTS, lines))

    def eliminate(self, before: Array) -> Array:
        for row in range(2):
            self._set_jacobians(row)
        for row, upper in enumerate(self.upper):
            self._set_jacobians(row + 2)
            lower, diagonal = self._couple(row, upper)
            for component in range(COMPONENTS):
                factor = lower[:, component]
                diagonal -= factor[:, None] * before[component, :-1]
                upper[:, -1] -= factor * before[component, -1]
            solve_blocks(diagonal, upper)
            before = upper
        return before

    def substitute(self, after: Array) -> Array:
        for upper, solution in zip(self.upper[::-1], self.solution[::-1], strict=True):
            after = upper[:, -1] - (upper[:, :-1] * after).sum(axis=1)
            solution[:] = after.reshape(solution.shape)
        return after

    def _set_jacobians(self, row: int) -> None:
        """Those of a row of states, of which the first is before that of `upper`."""
        flux, spread = self.jacobians[row % 3]
        density, energy = self.states[row, 0], self.states[row, 4]
        velocity, energy = self.states[row, 1:4] / density, energy / density
        set_flux_jacobian(flux, velocity, energy, self.axis, self.convection)
        set_diffusion_jacobian(spread, velocity, energy, 1 / density, self.axis, self.diffusion)

    def _couple(self, row: int, upper: Array) -> tuple[Array, Array]:
        """The blocks that couple a row with the one before and itself; sets that with the next."""
        before, same, after = (self.jacobians[(row + step) % 3] for step in range(3))
        np.subtract(after[0], after[1], out=upper[:, :-1])
        diagonal = 2 * same[1]
        for component in range(COMPONENTS):
            diagonal[component, component] += 1
        return -before[0] - before[1], diagonal


def set_flux_jacobian(
    block: Array, velocity: Array, energy: Array, axis: int, scale: float
) -> None:
    """That of the fluxes along an axis by the state, times a scale: (5, 5, lines). The velocity has
    the shape (3, lines), the energy, per mass, (lines)."""
    normal, momentum = 1 + axis, slice(1, 4)
    kinetic = (velocity**2).sum(axis=0) / 2
    speed, scaled = velocity[axis], scale * velocity
    block[0, normal] = scale
    block[momentum, 0] = -speed * scaled
    block[normal, 0] += C2 * scale * kinetic
    for component in range(1, 4):
        block[component, component] = scaled[axis]
    block[momentum, normal] = scaled
    block[normal, momentum] = -C2 * scaled
    block[normal, normal] += 2 * scaled[axis]
    block[normal, 4] = C2 * scale
    block[4, 0] = (2 * C2 * kinetic - C1 * energy) * scaled[axis]
    block[4, momentum] = -C2 * speed * scaled
    block[4, normal] += scale * (C1 * energy - C2 * kinetic)
    block[4, 4] = C1 * scaled[axis]


def set_diffusion_jacobian(
    block: Array, velocity: Array, energy: Array, volume: Array, axis: int, scale: float
) -> None:
    """That of what viscosity, heat conduction and artificial diffusion even out, likewise; `volume`
    is that of a mass, (lines)."""
    viscosity = np.full((3, 1), C3C4 * scale)
    viscosity[axis] *= 4 / 3
    heat = C1345 * scale
    block[0, 0] = DIFFUSION[axis] * scale
    block[1:4, 0] = -viscosity * volume * velocity
    block[4, 1:4] = (viscosity - heat) * volume * velocity
    block[4, 0] = -(block[4, 1:4] * velocity).sum(axis=0) - heat * volume * energy
    for component, factor in enumerate((*viscosity[:, 0], heat), 1):
        block[component, component] = factor * volume + DIFFUSION[axis] * scale


def solve_blocks(matrices: Array, right: Array) -> None:
    """Makes `right`, (5, columns, lines), the solution of the equations with these matrices,
    (5, 5, lines), line by line: Gaussian elimination without pivots. The matrices are lost."""
    for pivot in range(COMPONENTS):
        below = pivot + 1
        factor = 1 / matrices[pivot, pivot]
        matrices[pivot, below:] *= factor
        right[pivot] *= factor
        column = matrices[below:, pivot, None]
        matrices[below:, below:] -= column * matrices[pivot, below:]
        right[below:] -= column * right[pivot]
    for pivot in reversed(range(1, COMPONENTS)):
        right[:pivot] -= matrices[:pivot, pivot, None] * right[pivot]
