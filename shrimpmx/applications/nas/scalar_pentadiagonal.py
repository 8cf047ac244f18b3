"""SP, scalar pentadiagonal: an implicit solver of the Navier-Stokes equations, whose approximate
factors are diagonal in the characteristic variables of each axis (RNR-94-007, chapter 3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shrimpmx.applications.nas.adi import characteristics
from shrimpmx.applications.nas.adi.penta_solve import PentadiagonalLines
from shrimpmx.applications.nas.adi.solver import Flow, ImplicitSolver, Problem
from shrimpmx.applications.nas.flow.state import CellState

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
        transform(flow, characteristics.to_x)
        flow.solve(0, PentadiagonalLines)
        transform(flow, characteristics.from_x_to_y)
        flow.solve(1, PentadiagonalLines)
        transform(flow, characteristics.from_y_to_z)
        flow.solve(2, PentadiagonalLines)
        transform(flow, characteristics.from_z)

    def operations(self, points: int) -> float:
        return 881.174 * points**3 - 4683.91 * points**2 + 11484.5 * points - 19272.4


def transform(flow: Flow, components: Callable[[CellState], characteristics.Components]) -> None:
    """Gives the change of the state of each cell the components that a function returns."""
    for state in flow.states:
        state.rhs = np.stack(components(state))
