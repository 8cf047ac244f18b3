"""What BT and SP have in common as benchmarks: the steps, and the verification."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from mpi4py import MPI

from shrimpmx.applications.nas.adi.faces import exchange_faces
from shrimpmx.applications.nas.adi.lines import Lines
from shrimpmx.applications.nas.adi.multipartition import Multipartition
from shrimpmx.applications.nas.adi.sweep import sweep
from shrimpmx.applications.nas.exact_solution import Array
from shrimpmx.applications.nas.flow.right_hand_side import exact_forcing, right_hand_side
from shrimpmx.applications.nas.flow.state import CellState, Gas
from shrimpmx.applications.nas.kernel import Kernel, Norms, Outcome, norm_checks, norms, timed


@dataclass(frozen=True)
class Problem:
    """A grid of points³, steps in time, and the norms that must come out, by component: of the
    right-hand side after the last step, and of the difference from the exact solution."""

    points: int
    time_step: float
    steps: int
    residual: Norms
    error: Norms


class Flow:
    """A rank's cells of the flow."""

    def __init__(self, problem: Problem, world: MPI.Intracomm) -> None:
        self.world = world
        self.points = problem.points
        self.time_step = problem.time_step
        self.partition = Multipartition(problem.points, world.size, world.rank)
        self.states = [CellState(cell, problem.points) for cell in self.partition.cells]
        self.forcing = [exact_forcing(state) for state in self.states]

    def set_right_hand_sides(self) -> None:
        """Of all cells, for the present state: the rate at which it changes. Collective."""
        exchange_faces(self.world, self.partition, [state.u for state in self.states])
        for state, forcing in zip(self.states, self.forcing, strict=True):
            state.gas = Gas.of(state.u)
            state.rhs = right_hand_side(state, forcing)

    def solve(self, axis: int, lines: type[Lines]) -> None:
        """Solves along an axis, for the change of the state. Collective."""
        sweep(self.world, self.partition, self.states, axis, lines, self.time_step)

    def residual(self) -> Array:
        """The norm of the right-hand side by component, (5,). Collective."""
        return norms(self.world, [state.rhs for state in self.states], self.points)

    def error(self) -> Array:
        """That of the difference from the exact solution. Collective."""
        return norms(self.world, [state.error() for state in self.states], self.points)


class ImplicitSolver(Kernel[Problem]):
    """BT or SP."""

    numbers_per_point: ClassVar[int]  # that a run has at once, at most, about

    @abstractmethod
    def advance(self, flow: Flow) -> None:
        """A step in time, but for adding the change: from rates to changes. Collective."""

    @abstractmethod
    def operations(self, points: int) -> float:
        """Floating-point operations of a step, by NPB's formula."""

    def ranks_rule(self) -> str:
        return "a square, its root at most a third of the points along an axis"

    def takes_ranks(self, ranks: int, problem: Problem) -> bool:
        return Multipartition.takes(problem.points, ranks)

    def memory_bytes(self, problem: Problem, ranks: int) -> int:
        return self.numbers_per_point * 8 * problem.points**3

    def describe(self, problem: Problem) -> str:
        return f"{problem.points}³ points, {problem.steps} steps of {problem.time_step}"

    def run(self, problem: Problem, world: MPI.Intracomm) -> Outcome:
        flow = Flow(problem, world)
        self._step(flow)
        for state in flow.states:
            state.reset()
        with timed(world) as timer:
            for _ in range(problem.steps):
                self._step(flow)
        error = flow.error()
        flow.set_right_hand_sides()
        checks = (
            *norm_checks("residual", flow.residual(), problem.residual),
            *norm_checks("error", error, problem.error),
        )
        return Outcome(timer.seconds, problem.steps * self.operations(problem.points), checks)

    def _step(self, flow: Flow) -> None:
        flow.set_right_hand_sides()
        for state in flow.states:
            state.rhs *= flow.time_step
        self.advance(flow)
        for state in flow.states:
            state.add()
