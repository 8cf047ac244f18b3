"""EP, embarrassingly parallel: pairs of Gaussian deviates by the polar method, counted by annuli.

RNR-94-007, 2.1 (kernel EP): of pairs (x, y) in the square (-1, 1)², those in the unit circle give
deviates; ten counts of max(|X|, |Y|), and the sums of X and Y, are all that ranks exchange.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from shrimpmx.applications.nas.kernel import Check, Kernel, Outcome, timed
from shrimpmx.applications.nas.random_numbers import seed_after, uniform

SEED = 271828183
BATCH = 1 << 16  # pairs that are drawn at once
ANNULI = 10
WITHIN = 1e-8


@dataclass(frozen=True)
class Problem:
    """2^log_pairs pairs, and the sums that must come out."""

    log_pairs: int
    sums: tuple[float, float]


PROBLEMS = {
    "S": Problem(24, (-3.247834652034740e3, -6.958407078382297e3)),
    "W": Problem(25, (-2.863319731645753e3, -6.320053679109499e3)),
    "A": Problem(28, (-4.295875165629892e3, -1.580732573678431e4)),
    "B": Problem(30, (4.033815542441498e4, -2.660669192809235e4)),
}


class EmbarrassinglyParallel(Kernel[Problem]):
    """EP."""

    name = "EP"
    title = "embarrassingly parallel"
    problems = PROBLEMS

    def ranks_rule(self) -> str:
        return "1 or more"

    def takes_ranks(self, ranks: int, problem: Problem) -> bool:
        return ranks >= 1

    def memory_bytes(self, problem: Problem, ranks: int) -> int:
        return ranks * BATCH * 8 * 12

    def describe(self, problem: Problem) -> str:
        return f"2^{problem.log_pairs} pairs"

    def run(self, problem: Problem, world: MPI.Intracomm) -> Outcome:
        batches = (1 << problem.log_pairs) // BATCH
        mine = np.zeros(2 + ANNULI)
        everyone = np.empty_like(mine)
        with timed(world) as timer:
            for batch in range(world.rank, batches, world.size):
                mine += gaussian_sums(seed_after(2 * BATCH * batch, SEED))
            world.Allreduce(mine, everyone)
        checks = tuple(
            Check(f"sum of {axis}", float(computed), official, WITHIN)
            for axis, computed, official in zip("XY", everyone, problem.sums, strict=False)
        )
        return Outcome(timer.seconds, 2.0 ** (problem.log_pairs + 1), checks)


def gaussian_sums(seed: int) -> npt.NDArray[np.float64]:
    """A batch of pairs from `seed` on: the sums of X and of Y, and the counts by annuli."""
    x, y = 2 * uniform(2 * BATCH, seed).reshape(BATCH, 2).T - 1
    square = x * x + y * y
    inside = square <= 1
    square = square[inside]
    factor = np.sqrt(-2 * np.log(square) / square)
    deviates = np.stack((x[inside], y[inside])) * factor
    annuli = np.abs(deviates).max(axis=0).astype(np.intp)
    return np.concatenate((deviates.sum(axis=1), np.bincount(annuli, minlength=ANNULI)))
