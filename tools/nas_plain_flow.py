"""BT, SP and LU for one process, in plain numpy: what `nas_plain` measures by.

RNR-94-007, chapter 3, and at the boundary the differences of NPB 3. Arrays cover the whole grid: of
a state the shape is (5, n, n, n), of a rate or a change (5, n - 2, n - 2, n - 2), off the boundary.
The problem is that of the benchmarks: exact solution, initial state, constants of the gas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from shrimpmx.applications.nas.exact_solution import (
    C1,
    C1C5,
    C2,
    C3C4,
    C1345,
    Array,
    exact_solution,
)
from shrimpmx.applications.nas.flow.cell import AXES, GHOSTS, Cell
from shrimpmx.applications.nas.flow.state import initial_state

DIFFUSION = (0.75, 0.75, 1.0)  # by axis
DISSIPATION = 0.25
RELAXATION = 1.2  # of LU
BETA = sqrt(0.5)
INNER = slice(1, -1)
INSIDE = (slice(None), INNER, INNER, INNER)


def along(field: Array, axis: int) -> Array:
    """The rows along an axis, off the boundary of the other two: (n, ..., n - 2, n - 2)."""
    return np.moveaxis(field, axis - 3, 0)[..., INNER, INNER]


def rate(u: Array) -> Array:
    """How fast the state would change without forcing."""
    scale = u.shape[1] - 1
    velocity = u[1:4] / u[0]
    kinetic = (velocity**2).sum(axis=0) / 2
    pressure = C2 * (u[4] - u[0] * kinetic)
    heat = C1C5 * u[4] / u[0] + (1 - C1C5) * kinetic
    total = np.zeros_like(u[INSIDE])
    for axis in AXES:
        speed = velocity[axis]
        flux = u * speed
        flux[1 + axis] += pressure
        flux[4] += pressure * speed
        even = DIFFUSION[axis] * u
        even[1:4] += C3C4 * velocity
        even[1 + axis] += C3C4 / 3 * speed
        even[4] += C3C4 * (heat + speed**2 / 6)
        state, flux, even = (along(field, axis) for field in (u, flux, even))
        added = scale**2 * (even[:-2] - 2 * even[1:-1] + even[2:])
        added -= scale / 2 * (flux[2:] - flux[:-2])
        added -= DISSIPATION * fourth_difference(state[1:-1])
        total += np.moveaxis(added, 0, axis - 3)
    return total


def fourth_difference(rows: Array) -> Array:
    """Along the first axis. At the boundary, beyond both ends, the state and its second difference
    count as 0."""
    difference = 6 * rows
    difference[1:] -= 4 * rows[:-1]
    difference[:-1] -= 4 * rows[1:]
    difference[2:] += rows[:-2]
    difference[:-2] += rows[2:]
    difference[0] -= rows[0]
    difference[-1] -= rows[-1]
    return difference


class Flow(ABC):
    """The state, and how it advances."""

    def __init__(self, problem: Any) -> None:
        self.points, self.time_step, self.steps = problem.points, problem.time_step, problem.steps
        places = np.arange(self.points) / (self.points - 1)
        self.exact = exact_solution(*np.meshgrid(*3 * [places], indexing="ij", sparse=True))
        self.forcing = -rate(self.exact)
        self.begin()
        self.step()
        self.begin()

    def begin(self) -> None:
        """Back to the initial state."""
        whole = initial_state(Cell.at((0, 0, 0), (1, 1, 1), self.points), self.points)
        self.u = whole[:, *3 * [slice(GHOSTS, -GHOSTS)]].copy()

    @abstractmethod
    def step(self) -> None:
        """A step in time."""

    def run(self) -> None:
        """All steps: the part that NPB times."""
        for _ in range(self.steps):
            self.step()

    def right_hand_side(self) -> Array:
        """How fast the state changes."""
        return rate(self.u) + self.forcing

    def figures(self) -> list[complex]:
        """Norms of the right-hand side and of the error, by component."""
        fields = self.right_hand_side(), (self.u - self.exact)[INSIDE]
        return [norm for field in fields for norm in np.sqrt((field**2).mean(axis=(1, 2, 3)))]


class BlockTridiagonal(Flow):
    """BT: systems of 5 by 5 blocks along each axis, which numpy's LAPACK solves block by block."""

    def step(self) -> None:
        change = self.time_step * self.right_hand_side()
        for axis in AXES:
            change = self.solve(change, axis)
        self.u[INSIDE] += change

    def solve(self, right: Array, axis: int) -> Array:
        """The solution along an axis. Blocks have the shape (rows, lines, 5, 5)."""
        scale = self.points - 1
        state = along(self.u, axis).reshape(self.points, 5, -1)
        flux = self.time_step * scale / 2 * flux_jacobian(state, axis)
        even = self.time_step * scale**2 * diffusion_jacobian(state, axis)
        lower = -flux[:-2] - even[:-2]
        diagonal = 2 * even[1:-1] + np.eye(5)
        rows = np.moveaxis(right, axis - 3, 0)
        vectors = rows.reshape(*rows.shape[:2], -1).swapaxes(1, 2)[..., None]
        system = np.concatenate((flux[2:] - even[2:], vectors), axis=-1)
        system[0] = np.linalg.solve(diagonal[0], system[0])
        for row in range(1, len(system)):
            product = lower[row] @ system[row - 1]
            diagonal[row] -= product[..., :5]
            system[row, ..., 5] -= product[..., 5]
            system[row] = np.linalg.solve(diagonal[row], system[row])
        solution = system[..., 5:].copy()
        for row in reversed(range(len(system) - 1)):
            solution[row] -= system[row, ..., :5] @ solution[row + 1]
        return np.moveaxis(solution[..., 0].swapaxes(1, 2).reshape(rows.shape), 0, axis - 3)


def flux_jacobian(state: Array, axis: int) -> Array:
    """That of the fluxes along an axis, (rows, lines, 5, 5), of a state (rows, 5, lines)."""
    velocity, energy = state[:, 1:4] / state[:, :1], state[:, 4] / state[:, 0]
    kinetic = (velocity**2).sum(axis=1) / 2
    speed, normal = velocity[:, axis], 1 + axis
    block = np.zeros((*speed.shape, 5, 5))
    block[..., 0, normal] = 1
    for one, component in enumerate(range(1, 4)):
        block[..., component, 0] = -speed * velocity[:, one]
        block[..., component, component] += speed
        block[..., component, normal] += velocity[:, one]
        block[..., normal, component] -= C2 * velocity[:, one]
        block[..., 4, component] = -C2 * speed * velocity[:, one]
    block[..., normal, 0] += C2 * kinetic
    block[..., normal, 4] = C2
    block[..., 4, 0] = (2 * C2 * kinetic - C1 * energy) * speed
    block[..., 4, normal] += C1 * energy - C2 * kinetic
    block[..., 4, 4] = C1 * speed
    return block


def diffusion_jacobian(state: Array, axis: int) -> Array:
    """That of what is evened out along an axis, likewise."""
    volume = 1 / state[:, 0]
    velocity = state[:, 1:4] * volume[:, None]
    block = np.zeros((*volume.shape, 5, 5))
    block[..., 0, 0] = DIFFUSION[axis]
    block[..., 4, 0] = -C1345 * volume**2 * state[:, 4]
    block[..., 4, 4] = C1345 * volume + DIFFUSION[axis]
    for one, component in enumerate(range(1, 4)):
        viscosity = C3C4 * (4 / 3 if one == axis else 1)
        warming = (viscosity - C1345) * volume * velocity[:, one]
        block[..., component, 0] = -viscosity * volume * velocity[:, one]
        block[..., component, component] = viscosity * volume + DIFFUSION[axis]
        block[..., 4, component] = warming
        block[..., 4, 0] -= warming * velocity[:, one]
    return block


class ScalarPentadiagonal(Flow):
    """SP: scalar systems along each axis, in its characteristic variables."""

    def step(self) -> None:
        self.volume = 1 / self.u[0]
        self.velocity = self.u[1:4] * self.volume
        self.kinetic = (self.velocity**2).sum(axis=0) / 2
        self.sound = np.sqrt(C1 * C2 * (self.u[4] * self.volume - self.kinetic))
        change = self.solve(self.to_x(self.time_step * self.right_hand_side()), 0)
        first, second, third, up, down = change
        mean, turned = (up + down) / 2, BETA * third
        change = np.stack((-second, first, BETA * (up - down), mean - turned, mean + turned))
        change = self.solve(change, 1)
        first, second, third, up, down = change
        mean, turned = (up + down) / 2, BETA * first
        change = np.stack((BETA * (up - down), -third, second, mean - turned, mean + turned))
        self.u[INSIDE] += self.from_z(self.solve(change, 2))

    def to_x(self, change: Array) -> Array:
        """From the state's components to the variables of the x axis."""
        density, along_x, along_y, along_z, energy = change
        inside = INSIDE[1:]
        x, y, z = self.velocity[INSIDE]
        volume, sound = self.volume[inside], self.sound[inside]
        work = x * along_x + y * along_y + z * along_z
        entropy = C2 / sound**2 * (self.kinetic[inside] * density - work + energy)
        thrust = BETA * volume * (x * density - along_x)
        swell = BETA * volume * sound * entropy
        vortices = volume * (along_z - z * density), volume * (y * density - along_y)
        return np.stack((density - entropy, *vortices, swell - thrust, swell + thrust))

    def from_z(self, change: Array) -> Array:
        """From the variables of the z axis to the state's components."""
        first, second, third, up, down = change
        inside = INSIDE[1:]
        x, y, z = self.velocity[INSIDE]
        mass, sound = self.u[0][inside], self.sound[inside]
        swell = BETA * mass / sound * (up + down)
        thrust = BETA * mass * (up - down)
        density = third + swell
        energy = mass * (y * first - x * second) + self.kinetic[inside] * density
        energy += sound**2 / C2 * swell + z * thrust
        momentum = x * density - mass * second, y * density + mass * first, z * density + thrust
        return np.stack((density, *momentum, energy))

    def solve(self, right: Array, axis: int) -> Array:
        """The solution along an axis. There are three matrices: those of the speeds u, u + c and
        u - c; the first one is that of three components."""
        scale, step = self.points - 1, self.time_step
        speed, sound, volume = (
            np.ascontiguousarray(along(field, axis))
            for field in (self.velocity[axis], self.sound, self.volume)
        )
        flux = step * scale / 2 * np.stack((speed, speed + sound, speed - sound), axis=1)
        even = step * scale**2 * (DIFFUSION[axis] + C1345 * volume)[:, None]
        second = step * DISSIPATION  # weight of the rows two away
        before = -flux[:-2] - even[:-2] - 4 * second
        after = flux[2:] - even[2:] - 4 * second
        pivots = np.repeat(1 + 2 * even[1:-1] + 6 * second, 3, axis=1)
        pivots[[0, -1]] -= second
        two_after = np.full_like(after, second)
        rows = np.ascontiguousarray(np.moveaxis(right, axis - 3, 0))
        parts = ((0, slice(0, 3)), (1, slice(3, 4)), (2, slice(4, 5)))
        for row, (factor, pivot) in enumerate(zip(before, pivots, strict=True)):
            if row > 1:
                factor -= second * after[row - 2]
                pivot -= second * two_after[row - 2]
                rows[row] -= second * rows[row - 2]
            if row > 0:
                pivot -= factor * after[row - 1]
                after[row] -= factor * two_after[row - 1]
                for one, components in parts:
                    rows[row, components] -= factor[one] * rows[row - 1, components]
            after[row] /= pivot
            two_after[row] /= pivot
            for one, components in parts:
                rows[row, components] /= pivot[one]
        for row in reversed(range(len(rows) - 1)):
            for one, components in parts:
                rows[row, components] -= after[row, one] * rows[row + 1, components]
                if row < len(rows) - 2:
                    rows[row, components] -= two_after[row, one] * rows[row + 2, components]
        return np.moveaxis(rows, 0, axis - 3)


class LowerUpper(Flow):
    """LU: a lower and an upper triangular system, front by front of points i + j + k = constant."""

    def begin(self) -> None:
        super().begin()
        self.right = self.right_hand_side()
        inner = self.points - 2
        places = np.indices(3 * (inner,)).reshape(3, -1)
        number = places.sum(axis=0)
        order = np.argsort(number, kind="stable")
        flat = np.ravel_multi_index(tuple(places + 1), 3 * (self.points,))[order]
        cuts = np.searchsorted(number[order], np.arange(3 * inner - 1))
        self.fronts = [flat[begin:end] for begin, end in pairwise(cuts)]

    def step(self) -> None:
        volume = 1 / self.u[0]
        self.known = np.concatenate((self.u[1:] * volume, volume[None])).reshape(5, -1)
        self.change = np.zeros_like(self.known)
        self.rest = np.zeros_like(self.known)
        self.rest.reshape(self.u.shape)[INSIDE] = self.time_step * self.right
        for front in self.fronts:
            self.relax(front, 1)
        self.rest[:] = 0
        for front in self.fronts[::-1]:
            self.relax(front, -1)
        change = self.change.reshape(self.u.shape)[INSIDE]
        self.u[INSIDE] += change / (RELAXATION * (2 - RELAXATION))
        self.right = self.right_hand_side()

    def relax(self, front: npt.NDArray[np.intp], way: int) -> None:
        """Adds to the change at a front the solution of its equations for the rest of their right-
        hand sides, and to the rest at the next front what the change is coupled with there."""
        *velocities, energy, volume = self.known[:, front]
        velocity, right = np.array(velocities), self.rest[:, front]
        scale = self.points - 1
        weight = 2 * self.time_step * scale**2
        own = 1 + weight * sum(DIFFUSION)
        viscosity = 10 / 3 * C3C4  # of three axes
        momentum = right[1:4] - velocity * right[0]
        momentum /= own + weight * viscosity * volume
        heat = right[4] - energy * right[0]
        heat -= weight * (viscosity - 3 * C1345) * volume * (velocity * momentum).sum(axis=0)
        heat /= own + weight * 3 * C1345 * volume
        density = right[0] / own
        self.change[0, front] += density
        self.change[1:4, front] += momentum + velocity * density
        self.change[4, front] += heat + energy * density

        change = self.change[:, front]
        kinetic = (velocity**2).sum(axis=0) / 2
        momentum = change[1:4] - velocity * change[0]
        work = (velocity * momentum).sum(axis=0)
        pressure = C2 * (change[4] - kinetic * change[0] - work)
        enthalpy = energy + C2 * (energy - kinetic)
        spread = C3C4 * volume * momentum
        warming = volume * (C1345 * (change[4] - energy * change[0]) + (C3C4 - C1345) * work)
        for axis, stride in enumerate((self.points**2, self.points, 1)):
            speed = velocity[axis]
            flux = change * speed
            flux[0] += momentum[axis]
            flux[1:4] += velocity * momentum[axis]
            flux[1 + axis] += pressure
            flux[4] += enthalpy * momentum[axis] + pressure * speed
            even = DIFFUSION[axis] * change
            even[1:4] += spread
            even[1 + axis] += spread[axis] / 3
            even[4] += warming + spread[axis] * speed / 3
            coupled = RELAXATION * self.time_step * (way * scale / 2 * flux + scale**2 * even)
            self.rest[:, front + way * stride] += coupled
