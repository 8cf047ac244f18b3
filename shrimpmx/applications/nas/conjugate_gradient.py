"""CG, conjugate gradient: the smallest eigenvalue of a large sparse matrix.

RNR-94-007 (kernel CG): each step of the inverse power method solves a system by 25 iterations of
the conjugate gradient method. Ranks exchange parts of vectors with their transpose partners, and
sum along process rows in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from shrimpmx.applications.nas.kernel import Check, Kernel, Outcome, timed
from shrimpmx.applications.nas.matrix_partition import partition
from shrimpmx.applications.nas.sparse_matrix import matrix_block

SOLVER_ITERATIONS = 25
WITHIN = 1e-10
# Memory, about: a random element of a vector, and an element of an outer product while it is added.
VECTOR_ELEMENT_BYTES = 120
PRODUCT_BYTES = 72

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A matrix of order `order`, and the eigenvalue that must come out."""

    order: int
    nonzeros: int  # of each random vector, but for one
    iterations: int
    shift: float
    zeta: float


PROBLEMS = {
    "S": Problem(1400, 7, 15, 10.0, 8.5971775078648),
    "W": Problem(7000, 8, 15, 12.0, 10.362595087124),
    "A": Problem(14000, 11, 15, 20.0, 17.130235054029),
    "B": Problem(75000, 13, 75, 60.0, 22.712745482631),
}


class ConjugateGradient(Kernel[Problem]):
    """CG."""

    name = "CG"
    title = "conjugate gradient"
    problems = PROBLEMS

    def ranks_rule(self) -> str:
        return "a power of two"

    def takes_ranks(self, ranks: int, problem: Problem) -> bool:
        return ranks.bit_count() == 1

    def memory_bytes(self, problem: Problem, ranks: int) -> int:
        products = problem.order * (problem.nonzeros + 1) ** 2
        drawn = problem.order * problem.nonzeros  # by each rank
        return PRODUCT_BYTES * products + ranks * VECTOR_ELEMENT_BYTES * drawn

    def describe(self, problem: Problem) -> str:
        return f"order {problem.order}, {problem.iterations} iterations"

    def run(self, problem: Problem, world: MPI.Intracomm) -> Outcome:
        solver = _Solver(problem, world)
        solver.step()  # untimed, as in NPB
        solver.x.fill(1)
        zeta = 0.0
        with timed(world) as timer:
            for _ in range(problem.iterations):
                zeta = problem.shift + 1 / solver.step()
        a = problem.nonzeros * (problem.nonzeros + 1)
        operations = 2.0 * problem.iterations * problem.order * (3 + a + 25 * (5 + a) + 3)
        return Outcome(timer.seconds, operations, (Check("zeta", zeta, problem.zeta, WITHIN),))


class _Solver:
    """This rank's part of the matrix and of the vectors, by their names in RNR-94-007."""

    def __init__(self, problem: Problem, world: MPI.Intracomm) -> None:
        self._world = world
        self._part = part = partition(world.rank, world.size, problem.order)
        self._matrix = matrix_block(
            problem.order, problem.nonzeros, problem.shift, part.rows, part.columns
        )
        self.x = np.ones(len(part.columns))
        self._z, self._p, self._q, self._r, self._scaled = (np.empty_like(self.x) for _ in range(5))
        # Of a product, before it is summed over the process row: all rows of this rank, those
        # that it sums, and those that its first partner sums.
        self._partial = np.empty(len(part.rows))
        begin = part.summed.start - part.rows.start
        self._summed = self._partial[begin : begin + len(part.summed)]
        self._other = self._partial[:begin] if begin else self._partial[len(part.summed) :]
        self._theirs = np.empty_like(self._summed)

    def step(self) -> float:
        """Solves A z = x, and makes z, normed, the next x; the product x z before that."""
        self._solve()
        x_z, z_z = self._dots((self.x, self._z), (self._z, self._z))
        np.multiply(self._z, 1 / sqrt(z_z), out=self.x)
        return x_z

    def _solve(self) -> float:
        """Approximates the z with A z = x; the norm of the residual."""
        z, p, q, r = self._z, self._p, self._q, self._r
        z.fill(0)
        np.copyto(r, self.x)
        np.copyto(p, r)
        [rho] = self._dots((r, r))
        for _ in range(SOLVER_ITERATIONS):
            self._product(p, q)
            [p_q] = self._dots((p, q))
            z += np.multiply(p, rho / p_q, out=self._scaled)
            r -= np.multiply(q, rho / p_q, out=self._scaled)
            before = rho
            [rho] = self._dots((r, r))
            p *= rho / before
            p += r
        self._product(z, r)
        r -= self.x
        [square] = self._dots((r, r))
        return sqrt(square)

    def _product(self, vector: Floats, out: Floats) -> None:
        """Writes A times `vector` to `out`, this rank's part of both."""
        self._matrix.multiply(vector, self._partial)
        sent = self._other if len(self._other) else self._summed
        for partner in reversed(self._part.sum_partners):
            self._world.Sendrecv(sent, partner, 0, self._theirs, partner, 0)
            self._summed += self._theirs
            sent = self._summed
        partner = self._part.transpose_partner
        if partner == self._world.rank:
            np.copyto(out, self._summed)
        else:
            self._world.Sendrecv(self._summed, partner, 0, out, partner, 0)

    def _dots(self, *pairs: tuple[Floats, Floats]) -> list[float]:
        """The scalar products of pairs of vectors."""
        sums = np.array([one @ other for one, other in pairs])
        theirs = np.empty_like(sums)
        for partner in self._part.sum_partners:
            self._world.Sendrecv(sums, partner, 0, theirs, partner, 0)
            sums += theirs
        found: list[float] = sums.tolist()
        return found
