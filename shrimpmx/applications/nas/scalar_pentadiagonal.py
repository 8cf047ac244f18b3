"""SP, scalar pentadiagonal: an implicit solver of the Navier-Stokes equations, whose approximate
factors are diagonal in the characteristic variables of each axis (RNR-94-007, 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from shrimpmx.applications.nas.adi.penta_solve import PentadiagonalLines
from shrimpmx.applications.nas.adi.solver import Flow, ImplicitSolver, Problem
from shrimpmx.applications.nas.adi.state import CellState
from shrimpmx.applications.nas.exact_solution import C2, Array

X, Y, Z = range(3)
BETA = sqrt(0.5)

PROBLEMS = {
    "S": Problem(
        12, 0.015, 100,
        (2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02,
         1.5840557224455615e-02, 3.4849040609362460e-02),
        (2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05,
         1.5750704994480102e-05, 3.4177666183390531e-05),
    ),
    "W": Problem(
        36, 0.0015, 400,
        (0.1893253733584e-02, 0.1717075447775e-03, 0.2778153350936e-03, 0.2887475409984e-03,
         0.3143611161242e-02),
        (0.7542088599534e-04, 0.6512852253086e-05, 0.1049092285688e-04, 0.1128838671535e-04,
         0.1212845639773e-03),
    ),
    "A": Problem(
        64, 0.0015, 400,
        (2.4799822399300195e00, 1.1276337964368832e00, 1.5028977888770491e00,
         1.4217816211695179e00, 2.1292113035138280e00),
        (1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05,
         4.7671093939528255e-05, 1.3621613399213001e-04),
    ),
    "B": Problem(
        102, 0.001, 400,
        (0.6903293579998e02, 0.3095134488084e02, 0.4103336647017e02, 0.3864769009604e02,
         0.5643482272596e02),
        (0.9810006190188e-02, 0.1022827905670e-02, 0.1720597911692e-02, 0.1694479428231e-02,
         0.1847456263981e-01),
    ),
}  # fmt: skip


class ScalarPentadiagonal(ImplicitSolver):
    """SP."""

    name = "SP"
    title = "scalar pentadiagonal"
    problems = PROBLEMS
    numbers_per_point = 100

    def advance(self, flow: Flow) -> None:
        transform(flow, to_characteristics_of_x)
        flow.solve(X, PentadiagonalLines)
        transform(flow, from_x_to_y)
        flow.solve(Y, PentadiagonalLines)
        transform(flow, from_y_to_z)
        flow.solve(Z, PentadiagonalLines)
        transform(flow, from_characteristics_of_z)

    def operations(self, points: int) -> float:
        return 881.174 * points**3 - 4683.91 * points**2 + 11484.5 * points - 19272.4


def transform(flow: Flow, matrix: Callable[[CellState], tuple[Array, ...]]) -> None:
    """Gives the change of the state of each cell the components that a function gives."""
    for state in flow.states:
        state.rhs = np.stack(matrix(state))


def to_characteristics_of_x(state: CellState) -> tuple[Array, ...]:
    """NPB's txinvr: density 1, the vortices 2 and 3, sound up 4 and down the axis 5."""
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


def from_x_to_y(state: CellState) -> tuple[Array, ...]:
    """NPB's ninvr."""
    first, second, third, up, down = state.rhs
    mean, turned = (up + down) / 2, BETA * third
    return -second, first, BETA * (up - down), mean - turned, mean + turned


def from_y_to_z(state: CellState) -> tuple[Array, ...]:
    """NPB's pinvr."""
    first, second, third, up, down = state.rhs
    mean, turned = (up + down) / 2, BETA * first
    return BETA * (up - down), -third, second, mean - turned, mean + turned


def from_characteristics_of_z(state: CellState) -> tuple[Array, ...]:
    """NPB's tzetar: back to density, momentum and energy."""
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
