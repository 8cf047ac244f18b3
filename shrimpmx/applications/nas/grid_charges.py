"""MG's right-hand side: charges where random numbers, one for each point, are extreme."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shrimpmx.applications.nas.grid_levels import GridLevel
from shrimpmx.applications.nas.random_numbers import MULTIPLIER, seed_after, states

CHARGES = 10  # of each sign

States = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]


def extremes(level: GridLevel, size: int) -> tuple[States, Places]:
    """Random states of this rank's points, and their numbers in the whole grid: at least the
    CHARGES smallest and largest ones, if it has as many. NPB: zran3."""
    planes, rows, points = level.axes
    in_row = states(points.points, seed_after(points.first, seed=1))
    next_row = pow(MULTIPLIER, size, 1 << 46)
    found, places = [], []
    for plane in range(planes.first, planes.first + planes.points):
        first = (plane * size + rows.first) * size
        row_seeds = np.empty(rows.points, np.uint64)
        row_seeds[0] = seed_after(first)
        row_seeds[1:] = states(rows.points - 1, int(row_seeds[0]), next_row)
        numbers = (np.outer(row_seeds, in_row) & np.uint64((1 << 46) - 1)).ravel()
        some = np.arange(len(numbers))
        if len(numbers) > 2 * CHARGES:
            cuts = (CHARGES - 1, len(numbers) - CHARGES)
            order = np.argpartition(numbers, cuts)
            some = np.append(order[:CHARGES], order[-CHARGES:])
        row, point = np.divmod(some, points.points)
        found.append(numbers[some])
        places.append(first + row * size + points.first + point)
    return np.concatenate(found), np.concatenate(places)


def charges_of(found: States, places: Places) -> dict[int, float]:
    """The charge of each charged point of the whole grid, by its number; of the random states of
    all ranks."""
    order = places[np.argsort(found)].tolist()
    return dict.fromkeys(order[:CHARGES], -1.0) | dict.fromkeys(order[-CHARGES:], 1.0)


def set_charges(
    grid: npt.NDArray[np.float64], level: GridLevel, size: int, charges: dict[int, float]
) -> None:
    """Writes those of this rank's points; the others and ghosts stay as they are."""
    for number, charge in charges.items():
        place = (number // size**2, number // size % size, number % size)
        local = [at - axis.first for at, axis in zip(place, level.axes, strict=True)]
        if all(0 <= at < axis.points for at, axis in zip(local, level.axes, strict=True)):
            grid[tuple(at + 1 for at in local)] = charge
