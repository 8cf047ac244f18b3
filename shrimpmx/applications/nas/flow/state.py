"""What a rank knows of the flow in one of its cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from shrimpmx.applications.nas.exact_solution import C1, C2, COMPONENTS, Array, exact_solution
from shrimpmx.applications.nas.flow.cell import AXES, GHOSTS, Cell


@dataclass(frozen=True)
class Gas:
    """What follows from the state at each point: shape (x, y, z), the velocity (3, x, y, z)."""

    inverse_density: Array
    velocity: Array
    kinetic: Array  # kinetic energy per mass
    pressure: Array

    @classmethod
    def of(cls, state: Array) -> Gas:
        """Of states of shape (5, x, y, z)."""
        inverse = 1 / state[0]
        velocity = state[1:4] * inverse
        kinetic = (velocity[0] ** 2 + velocity[1] ** 2 + velocity[2] ** 2) / 2
        return cls(inverse, velocity, kinetic, C2 * (state[4] - kinetic * state[0]))

    @cached_property
    def sound(self) -> Array:
        """The speed of sound."""
        speed: Array = np.sqrt(C1 * self.pressure * self.inverse_density)
        return speed


class CellState:
    """A cell with its arrays: the state `u`, (5, x, y, z) with ghost layers; `gas`, which follows
    from it; and `rhs`, the right-hand side and later the change of the state, (5, x, y, z) off the
    boundary of the grid."""

    def __init__(self, cell: Cell, points: int) -> None:
        self.cell = cell
        self.points = points
        self.rhs = np.empty((COMPONENTS, *cell.inside_shape))
        self._memory = np.empty(0)
        self.reset()

    def reset(self) -> None:
        """Back to the initial state."""
        self.u = initial_state(self.cell, self.points)
        self.gas = Gas.of(self.u)

    def workspace(self, *shape: int) -> Array:
        """An array with anything in it, whose memory is that of the one before: new memory of this
        size would come from the system page by page, in each step again."""
        if self._memory.size < prod(shape):
            self._memory = np.empty(prod(shape))
        return self._memory[: prod(shape)].reshape(shape)

    def add(self) -> None:
        """Adds the change to the state."""
        self.u[:, *self.cell.inside] += self.rhs

    def error(self) -> Array:
        """The difference of the state from the exact solution, off the boundary of the grid."""
        return (self.u - self.exact())[:, *self.cell.inside]

    def exact(self) -> Array:
        """The exact solution at its points and in the ghost layers."""
        return exact_solution(*coordinates(self.cell, self.points, GHOSTS))


def rows_first(field: Array, axis: int) -> Array:
    """A view whose first index counts along an axis of space; these are the field's last three."""
    others = list(range(field.ndim))
    return field.transpose(others.pop(axis - 3), *others)


def coordinates(cell: Cell, points: int, ghosts: int = 0) -> list[Array]:
    """x, y and z of its points, in shapes that broadcast to theirs."""
    axes = (
        np.arange(low - ghosts, low + size + ghosts) / (points - 1)
        for low, size in zip(cell.low, cell.size, strict=True)
    )
    return list(np.meshgrid(*axes, indexing="ij", sparse=True))


def initial_state(cell: Cell, points: int) -> Array:
    """Transfinite interpolation between the exact values on the six faces of the grid, (5, x, y, z)
    (RNR-94-007, chapter 3); in the ghost layers the gas rests until neighbours send theirs."""
    places = coordinates(cell, points)
    between = []
    for axis, place in enumerate(places):
        low, high = (on_plane(places, axis, at) for at in (0, 1))
        between.append((1 - place) * low + place * high)
    x, y, z = between
    state = np.zeros((COMPONENTS, *(size + 2 * GHOSTS for size in cell.size)))
    state[0] = state[4] = 1
    state[:, *cell.owned] = x + y + z - x * y - x * z - y * z + x * y * z
    exact = exact_solution(*places)
    for axis in AXES:
        rows = rows_first(state[:, *cell.owned], axis)
        for layer, there in zip((0, -1), cell.at_boundary(axis), strict=True):
            if there:
                rows[layer] = rows_first(exact, axis)[layer]
    return state


def on_plane(places: list[Array], axis: int, at: float) -> Array:
    """The exact solution at the projections of places on a plane across an axis."""
    projected = list(places)
    projected[axis] = np.full_like(places[axis], at)
    return exact_solution(*projected)
