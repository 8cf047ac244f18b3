"""LU: the Navier-Stokes equations by symmetric successive over-relaxation (SSOR).

RNR-94-007, chapter 3. Each time step solves a lower and an upper triangular system, in which a
point depends on its neighbours: pencils wait for each other plane by plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from shrimpmx.applications.nas.exact_solution import COMPONENTS
from shrimpmx.applications.nas.flow.cell import AXES
from shrimpmx.applications.nas.flow.right_hand_side import exact_forcing, right_hand_side
from shrimpmx.applications.nas.flow.state import CellState, Gas
from shrimpmx.applications.nas.kernel import (
    WITHIN,
    Check,
    Kernel,
    Norms,
    Outcome,
    norm_checks,
    norms,
    timed,
)
from shrimpmx.applications.nas.lu.implicit_operator import ImplicitOperator
from shrimpmx.applications.nas.lu.sweeps import DOWN, UP, Neighbours, Sweeps
from shrimpmx.applications.nas.lu.wavefronts import LEAST_POINTS, pencil_of, takes

RELAXATION = 1.2


@dataclass(frozen=True)
class Problem:
    """A grid of points³, steps in pseudo-time, and what must come out: norms by component of the
    right-hand side and of the difference from the exact solution, and an integral."""

    points: int
    time_step: float
    steps: int
    residual: Norms
    error: Norms
    surface_integral: float


PROBLEMS = {
    "S": Problem(
        12, 0.5, 50,
        (1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03,
         1.5029584435994323e-03, 3.4264073155896461e-02),
        (6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05,
         5.8474222595157350e-05, 1.3103347914111294e-03),
        7.8418928865937083,
    ),
    "W": Problem(
        33, 1.5e-3, 300,
        (0.1236511638192e02, 0.1317228477799e01, 0.2550120713095e01,
         0.2326187750252e01, 0.2826799444189e02),
        (0.4867877144216, 0.5064652880982e-01, 0.9281818101960e-01,
         0.8570126542733e-01, 0.1084277417792e01),
        0.1161399311023e02,
    ),
    "A": Problem(
        64, 2.0, 250,
        (7.7902107606689367e02, 6.3402765259692870e01, 1.9499249727292479e02,
         1.7845301160418537e02, 1.8384760349464247e03),
        (2.9964085685471943e01, 2.8194576365003349, 7.3473412698774742,
         6.7139225687777051, 7.0715315688392578e01),
        2.6030925604886277e01,
    ),
    "B": Problem(
        102, 2.0, 250,
        (3.5532672969982736e03, 2.6214750795310692e02, 8.8333721850952190e02,
         7.7812774739425265e02, 7.3087969592545314e03),
        (1.1401176380212709e02, 8.1098963655421574, 2.8480597317698308e01,
         2.5905394567832939e01, 2.6054907504857413e02),
        4.7887162703308227e01,
    ),
}  # fmt: skip


class LowerUpper(Kernel[Problem]):
    """LU."""

    name = "LU"
    title = "SSOR solver of the Navier-Stokes equations"
    problems = PROBLEMS

    def ranks_rule(self) -> str:
        return f"a power of two that leaves each one {LEAST_POINTS} points along x and along y"

    def takes_ranks(self, ranks: int, problem: Problem) -> bool:
        return takes(problem.points, ranks)

    def memory_bytes(self, problem: Problem, ranks: int) -> int:
        return 8 * 100 * problem.points**3

    def describe(self, problem: Problem) -> str:
        return f"{problem.points}³ points, {problem.steps} steps of {problem.time_step}"

    def run(self, problem: Problem, world: MPI.Intracomm) -> Outcome:
        solver = Solver(problem, world)
        solver.begin()
        solver.iterate()  # as NPB does, once untimed, to touch all memory
        solver.begin()
        with timed(world) as timer:
            for _ in range(problem.steps):
                solver.iterate()
        return Outcome(timer.seconds, operations(problem), solver.checks())


def operations(problem: Problem) -> float:
    """Floating-point operations in all, by NPB's formula."""
    n = problem.points
    return problem.steps * (1984.77 * n**3 - 10923.3 * n**2 + 27770.9 * n - 144010)


class Solver:
    """A rank's pencil of the flow, and how it advances."""

    def __init__(self, problem: Problem, world: MPI.Intracomm) -> None:
        self.problem = problem
        self.world = world
        self.pencil = pencil_of(problem.points, world.size, world.rank)
        self.state = CellState(self.pencil, problem.points)
        self.forcing = exact_forcing(self.state)
        self.neighbours = Neighbours(self.pencil, world)
        self.operator = ImplicitOperator(problem.points, problem.time_step, RELAXATION)
        self.sweeps = Sweeps(self.neighbours, self.operator)
        self.order = self.sweeps.wavefronts.order

    def begin(self) -> None:
        """Back to the initial state. Collective."""
        self.state.reset()
        self.set_right_hand_side()

    def set_right_hand_side(self) -> None:
        """For the present state: the rate at which it changes. Collective."""
        state = self.state
        self.neighbours.exchange_layers(state.u)
        state.gas = Gas.of(state.u)
        state.rhs = right_hand_side(state, self.forcing)

    def iterate(self) -> None:
        """One time step. Collective."""
        inside = self.state.u[:, *self.pencil.inside]
        self.operator.linearise(inside.reshape(COMPONENTS, -1).take(self.order, axis=1))
        rate = self.state.rhs.reshape(COMPONENTS, -1)
        change = rate.take(self.order, axis=1)
        change *= self.problem.time_step
        self.sweeps.sweep(change, UP)
        self.sweeps.sweep(change, DOWN)
        change *= 1 / (RELAXATION * (2 - RELAXATION))
        rate[:, self.order] = change
        self.state.add()
        self.set_right_hand_side()

    def checks(self) -> tuple[Check, ...]:
        """What NPB verifies. Collective."""
        problem, points = self.problem, self.problem.points
        residual = norms(self.world, [self.state.rhs], points)
        error = norms(self.world, [self.state.error()], points)
        integral = np.array([surface_integral(self.state)])
        self.world.Allreduce(MPI.IN_PLACE, integral)
        return (
            *norm_checks("residual", residual, problem.residual),
            *norm_checks("error", error, problem.error),
            Check("surface integral", float(integral[0]), problem.surface_integral, WITHIN),
        )


def surface_integral(state: CellState) -> float:
    """This rank's part of the integral of the pressure over the faces of a box within the grid, by
    the trapezoidal rule: points of a face weigh 1, those of its edges a half, corners a quarter."""
    cell, points = state.cell, state.points
    ends = (1, points - 2), (1, points - 3), (2, points - 2)  # by axis, as NPB's indices less 1
    weights, faces = [], []
    for low, size, (first, last) in zip(cell.low, cell.size, ends, strict=True):
        place = np.arange(low, low + size)
        faces.append(((place == first) | (place == last)).astype(float))
        weights.append(((place >= first) & (place <= last)) - faces[-1] / 2)
    pressure = Gas.of(state.u[:, *cell.owned]).pressure
    total = 0.0
    for axis in AXES:
        factors = [*weights[:axis], faces[axis], *weights[axis + 1 :]]
        total += np.einsum("xyz,x,y,z->", pressure, *factors, optimize=True)
    return float(total) / (points - 1) ** 2
