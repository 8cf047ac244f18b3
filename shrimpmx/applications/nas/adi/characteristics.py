"""SP's characteristic variables: the changes of the state as entropy, vortices and sound.

RNR-94-007, chapter 3. Along an axis two of the five components are sound, up and down the axis; in
the order of NPB they are the last. Each function returns the components of state.rhs transformed.
"""

from __future__ import annotations

from math import sqrt

from shrimpmx.applications.nas.exact_solution import C2, Array
from shrimpmx.applications.nas.flow.state import CellState

X, Y, Z = range(3)
BETA = sqrt(0.5)

Components = tuple[Array, Array, Array, Array, Array]


def to_x(state: CellState) -> Components:
    """From density, momentum and energy to the variables of the x axis (NPB's txinvr)."""
    inside = state.cell.inside
    density, *momentum, energy = state.rhs
    u, v, w = state.gas.velocity[:, *inside]
    sound, volume = state.gas.sound[inside], state.gas.inverse_density[inside]
    pressure = C2 * (
        state.gas.kinetic[inside] * density
        - u * momentum[X] - v * momentum[Y] - w * momentum[Z] + energy
    )  # fmt: skip
    entropy = pressure / sound**2
    thrust = BETA * volume * (u * density - momentum[X])
    swell = BETA * volume * sound * entropy
    return (
        density - entropy,
        volume * (momentum[Z] - w * density),
        volume * (v * density - momentum[Y]),
        swell - thrust,
        swell + thrust,
    )


def from_x_to_y(state: CellState) -> Components:
    """From the variables of one axis to those of the next (NPB's ninvr)."""
    first, second, third, up, down = state.rhs
    mean, turned = (up + down) / 2, BETA * third
    return -second, first, BETA * (up - down), mean - turned, mean + turned


def from_y_to_z(state: CellState) -> Components:
    """Likewise (NPB's pinvr)."""
    first, second, third, up, down = state.rhs
    mean, turned = (up + down) / 2, BETA * first
    return BETA * (up - down), -third, second, mean - turned, mean + turned


def from_z(state: CellState) -> Components:
    """From the variables of the z axis to density, momentum and energy (NPB's tzetar)."""
    inside = state.cell.inside
    first, second, third, up, down = state.rhs
    u, v, w = state.gas.velocity[:, *inside]
    sound, mass = state.gas.sound[inside], state.u[0, *inside]
    swell = BETA * mass / sound * (up + down)
    thrust = BETA * mass * (up - down)
    density = third + swell
    return (
        density,
        u * density - mass * second,
        v * density + mass * first,
        w * density + thrust,
        mass * (v * first - u * second)
        + state.gas.kinetic[inside] * density + sound**2 / C2 * swell + w * thrust,
    )  # fmt: skip
