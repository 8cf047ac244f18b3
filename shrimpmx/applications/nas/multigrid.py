"""MG, multigrid: approximates the solution of a Poisson problem on a periodic cube.

RNR-94-007 (kernel MG): each iteration is a V-cycle, which takes the residual down to a grid of 2
points along an axis, and corrections back up.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt

import numpy as np
from mpi4py import MPI

from shrimpmx.applications.nas.ghost_exchange import GhostExchange
from shrimpmx.applications.nas.grid_charges import charges_of, extremes, set_charges
from shrimpmx.applications.nas.grid_levels import grid_level, process_grid
from shrimpmx.applications.nas.grid_operators import (
    Coefficients,
    Grid,
    interpolate,
    norm,
    residual,
    restrict,
    smooth,
)
from shrimpmx.applications.nas.kernel import Check, Kernel, Outcome, timed

WITHIN = 1e-8
SMOOTHER: Coefficients = (-3 / 8, 1 / 32, -1 / 64, 0)
SMOOTHER_OF_B: Coefficients = (-3 / 17, 1 / 33, -1 / 61, 0)


@dataclass(frozen=True)
class Problem:
    """A cube of 2^log_size points along an axis, and the norm of the residual that must come
    out."""

    log_size: int
    iterations: int
    smoother: Coefficients
    norm: float


PROBLEMS = {
    "S": Problem(5, 4, SMOOTHER, 0.5307707005734e-4),
    "W": Problem(7, 4, SMOOTHER, 0.6467329375339e-5),
    "A": Problem(8, 4, SMOOTHER, 0.2433365309069e-5),
    "B": Problem(8, 20, SMOOTHER_OF_B, 0.1800564401355e-5),
}


class Multigrid(Kernel[Problem]):
    """MG."""

    name = "MG"
    title = "multigrid"
    problems = PROBLEMS

    def ranks_rule(self) -> str:
        return "a power of two, up to the number of points"

    def takes_ranks(self, ranks: int, problem: Problem) -> bool:
        return ranks.bit_count() == 1 and ranks <= 1 << 3 * problem.log_size

    def memory_bytes(self, problem: Problem, ranks: int) -> int:
        # v, and u and r of all grids: the coarser ones together have a seventh of the points.
        size = 1 << problem.log_size
        return 8 * 4 * ranks * prod(size // part + 2 for part in process_grid(ranks))

    def describe(self, problem: Problem) -> str:
        size = 1 << problem.log_size
        return f"{size} x {size} x {size} points, {problem.iterations} iterations"

    def run(self, problem: Problem, world: MPI.Intracomm) -> Outcome:
        solver = _Solver(problem, world)
        solver.residual()
        solver.cycle()  # untimed, as in NPB
        solver.residual()
        solver.restart()
        with timed(world) as timer:
            solver.residual()
            solver.norm()
            for _ in range(problem.iterations):
                solver.cycle()
                solver.residual()
            found = solver.norm()
        operations = 58.0 * problem.iterations * 8**problem.log_size
        check = Check("norm of the residual", found, problem.norm, WITHIN)
        return Outcome(timer.seconds, operations, (check,))


class _Solver:
    """This rank's part of u, v and r, by their names in RNR-94-007; of u and r on all grids."""

    def __init__(self, problem: Problem, world: MPI.Intracomm) -> None:
        self._problem = problem
        self._world = world
        sizes = [2 << level for level in range(problem.log_size)]
        self._levels = [grid_level(world.rank, world.size, size) for size in sizes]
        self._exchanges = [GhostExchange(level, world) for level in self._levels]
        self._u, self._r = ([np.zeros(level.shape) for level in self._levels] for _ in range(2))
        finest, size = self._levels[-1], sizes[-1]
        found = world.allgather(extremes(finest, size))
        states, places = (np.concatenate(column) for column in zip(*found, strict=True))
        self._v = np.zeros(finest.shape)
        set_charges(self._v, finest, size, charges_of(states, places))
        self._exchanges[-1].fill(self._v)

    def restart(self) -> None:
        """Begins with u = 0 again."""
        self._u[-1].fill(0)

    def residual(self) -> None:
        """r = v - A u on the finest grid."""
        self._residual_at(-1, self._v)

    def norm(self) -> float:
        """The root of the mean square of r. NPB: norm2u3."""
        total = np.array(norm(self._r[-1]))
        self._world.Allreduce(MPI.IN_PLACE, total)
        return sqrt(float(total) / 8**self._problem.log_size)

    def cycle(self) -> None:
        """A V-cycle: corrects u on the finest grid by r. NPB: mg3P."""
        u, r, finest = self._u, self._r, len(self._levels) - 1
        for level in range(finest, 0, -1):
            if self._has_points(level - 1):
                restrict(r[level], r[level - 1])
            self._exchanges[level - 1].fill(r[level - 1])
        u[0].fill(0)
        self._smooth_at(0)
        for level in range(1, finest):
            u[level].fill(0)
            self._correct_at(level)
            self._residual_at(level, r[level])
            self._smooth_at(level)
        self._correct_at(finest)
        self._residual_at(finest, self._v)
        self._smooth_at(finest)

    def _has_points(self, level: int) -> bool:
        return self._levels[level].has_points

    def _residual_at(self, level: int, v: Grid) -> None:
        if self._has_points(level):
            residual(self._u[level], v, self._r[level])
        self._exchanges[level].fill(self._r[level])

    def _smooth_at(self, level: int) -> None:
        if self._has_points(level):
            smooth(self._r[level], self._u[level], self._problem.smoother)
        self._exchanges[level].fill(self._u[level])

    def _correct_at(self, level: int) -> None:
        """Adds the coarser grid's u. Ranks without points of that get their own from the others."""
        if self._has_points(level - 1):
            interpolate(self._u[level - 1], self._u[level])
        self._exchanges[level].hand_on(self._u[level])
