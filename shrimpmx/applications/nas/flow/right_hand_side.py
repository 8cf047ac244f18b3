"""The right-hand side: differences of fluxes, viscous terms, and fourth-order dissipation.

RNR-94-007, chapter 3. Along each axis the terms are D²W - DF, where D is the central difference
and D² the second one, F the flux, and W collects all of which a second difference is taken: viscous
terms, artificial diffusion, and, since a fourth difference is the second one of a second one,
dissipation.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod

import numpy as np

from shrimpmx.applications.nas.exact_solution import C1C5, C3C4, COMPONENTS, Array
from shrimpmx.applications.nas.flow.cell import AXES, Box, Cell, widened
from shrimpmx.applications.nas.flow.state import CellState, Gas, rows_first

DIFFUSION = (0.75, 0.75, 1.0)  # by axis
DISSIPATION = 0.25 * max(DIFFUSION)
SLAB_POINTS = 1 << 14  # at most, but for slabs of two layers


def right_hand_side(state: CellState, forcing: Array) -> Array:
    """The rate at which the state changes, shape (5, x, y, z) off the boundary of the grid."""
    return differences(state.u, state.gas, state.cell, state.points) + forcing


def exact_forcing(state: CellState) -> Array:
    """The forcing with which the exact solution would never change, in the same shape."""
    exact = state.exact()
    return -differences(exact, Gas.of(exact), state.cell, state.points)


def differences(u: Array, gas: Gas, cell: Cell, points: int) -> Array:
    """The terms of all three axes, slab by slab."""
    rate = np.zeros((COMPONENTS, *cell.inside_shape))
    begin = 0
    for slab, x_bounds in slabs(cell):
        end = begin + slab[0].stop - slab[0].start
        bounds = (x_bounds, cell.at_boundary(1), cell.at_boundary(2))
        for axis in AXES:
            add_differences(rate[:, begin:end], u, gas, axis, slab, bounds[axis], points)
        begin = end
    return rate


def slabs(cell: Cell) -> Iterator[tuple[Box, tuple[bool, bool]]]:
    """Cuts the points off the boundary across x into slabs whose arrays a CPU's cache holds, each
    at least two points thick; and whether each begins and ends beside the grid's boundary."""
    x, y, z = cell.inside
    thickness = x.stop - x.start
    count = min(-(-prod(cell.inside_shape) // SLAB_POINTS), thickness // 2)
    cuts = [x.start + number * thickness // count for number in range(count + 1)]
    first, last = cell.at_boundary(0)
    for begin, end in pairwise(cuts):
        yield (slice(begin, end), y, z), (first and begin == x.start, last and end == x.stop)


def add_differences(
    rate: Array,
    u: Array,
    gas: Gas,
    axis: int,
    inside: Box,
    bounds: tuple[bool, bool],
    points: int,
) -> None:
    """The terms of one axis, in a box of points off the boundary."""
    box = widened(inside, axis, 1)
    smoothed = rows_first(diffused(u, gas, axis, box, points), axis)
    smoothed -= DISSIPATION * second_difference(u, inside, axis, bounds)
    flux = rows_first(fluxes(u, gas, axis, box) * ((points - 1) / 2), axis)
    total = rows_first(rate, axis)
    total -= 2 * smoothed[1:-1]
    total += (smoothed - flux)[2:]
    total += (smoothed + flux)[:-2]


def fluxes(u: Array, gas: Gas, axis: int, box: Box) -> Array:
    """What flows along an axis in the points of a box."""
    speed, pressure = gas.velocity[axis, *box], gas.pressure[box]
    flux = u[:, *box] * speed
    flux[1 + axis] += pressure
    flux[4] += pressure * speed
    return flux


def diffused(u: Array, gas: Gas, axis: int, box: Box, points: int) -> Array:
    """What viscosity, heat conduction and artificial diffusion even out along an axis."""
    scale = (points - 1) ** 2
    viscosity = C3C4 * scale
    speed, energy = gas.velocity[axis, *box], u[4, *box]
    even = u[:, *box] * (DIFFUSION[axis] * scale)
    even[1:4] += viscosity * gas.velocity[:, *box]
    even[1 + axis] += viscosity / 3 * speed
    heat = C1C5 * energy * gas.inverse_density[box] + (1 - C1C5) * gas.kinetic[box]
    even[4] += viscosity * (heat + speed**2 / 6)
    return even


def second_difference(u: Array, inside: Box, axis: int, bounds: tuple[bool, bool]) -> Array:
    """That of the state along an axis, rows first, in a box and one point beyond. `bounds` says
    whether it begins and ends beside the boundary, where both the state and its difference count
    as 0."""
    rows = rows_first(u[:, *widened(inside, axis, 2)], axis)
    difference = rows[2:] + rows[:-2]
    difference -= 2 * rows[1:-1]
    first, last = bounds
    if first:
        difference[0] = 0
        difference[1] -= rows[1]
    if last:
        difference[-1] = 0
        difference[-2] -= rows[-2]
    return difference
