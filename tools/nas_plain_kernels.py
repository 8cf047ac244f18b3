"""CG, EP, FT, IS and MG for one process, in plain numpy: what `nas_plain` measures by.

RNR-94-007. Each sets up its problem, goes through what NPB does not time, runs what it times, and
has the figures that NPB verifies. Random numbers and problems are those of the benchmarks.
"""

from __future__ import annotations

from itertools import product
from math import pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from shrimpmx.applications.nas.grid_charges import charges_of, extremes
from shrimpmx.applications.nas.grid_levels import grid_level
from shrimpmx.applications.nas.integer_keys import keys_of
from shrimpmx.applications.nas.random_numbers import seed_after, uniform
from shrimpmx.applications.nas.sparse_matrix import matrix_block

Array = npt.NDArray[np.float64]


class ConjugateGradient:
    def __init__(self, problem: Any) -> None:
        self.problem = problem
        every = range(problem.order)
        self.matrix = matrix_block(problem.order, problem.nonzeros, problem.shift, every, every)
        self.x = np.ones(problem.order)
        self.step()
        self.x = np.ones(problem.order)

    def product(self, vector: Array) -> Array:
        products = self.matrix.elements * vector[self.matrix.columns]
        return np.add.reduceat(products, self.matrix.begins[:-1])

    def step(self) -> float:
        z, r, p = np.zeros_like(self.x), self.x, self.x
        rho = r @ r
        for _ in range(25):
            q = self.product(p)
            alpha = rho / (p @ q)
            z = z + alpha * p
            r = r - alpha * q
            before, rho = rho, r @ r
            p = r + rho / before * p
        self.residual = np.linalg.norm(self.x - self.product(z))
        zeta = self.problem.shift + 1 / (self.x @ z)
        self.x = z / np.linalg.norm(z)
        return zeta

    def run(self) -> None:
        for _ in range(self.problem.iterations):
            self.zeta = self.step()

    def figures(self) -> list[complex]:
        return [self.zeta]


class EmbarrassinglyParallel:
    def __init__(self, problem: Any) -> None:
        self.pairs = 1 << problem.log_pairs

    def run(self) -> None:
        batch = 1 << 16
        self.sums, self.counts = np.zeros(2), np.zeros(10)
        for first in range(0, self.pairs, batch):
            numbers = uniform(2 * batch, seed_after(2 * first, 271828183))
            x, y = 2 * numbers[::2] - 1, 2 * numbers[1::2] - 1
            square = x**2 + y**2
            inside = square <= 1
            x, y, square = x[inside], y[inside], square[inside]
            factor = np.sqrt(-2 * np.log(square) / square)
            x, y = x * factor, y * factor
            self.sums += x.sum(), y.sum()
            annuli = np.maximum(abs(x), abs(y)).astype(int)
            self.counts += np.bincount(annuli, minlength=10)

    def figures(self) -> list[complex]:
        return list(self.sums)


class FourierTransform:
    def __init__(self, problem: Any) -> None:
        self.shape, self.iterations = problem.shape, len(problem.checksums)
        self.begin()

    def begin(self) -> None:
        numbers = uniform(2 * int(np.prod(self.shape)))
        self.spectrum = np.fft.fftn(numbers.view(complex).reshape(self.shape))
        z, y, x = (np.fft.fftfreq(count, 1 / count) ** 2 for count in self.shape)
        squares = z[:, None, None] + y[:, None] + x
        self.factors = np.exp(-4e-6 * pi**2 * squares)

    def run(self) -> None:
        self.begin()
        nz, ny, nx = self.shape
        point = np.arange(1, 1025)
        self.sums = []
        for _ in range(self.iterations):
            self.spectrum *= self.factors
            field = np.fft.ifftn(self.spectrum)
            self.sums.append(field[5 * point % nz, 3 * point % ny, point % nx].sum())

    def figures(self) -> list[complex]:
        return self.sums


class IntegerSort:
    """Sorts the keys, as the benchmark has to before it sends them, and counts them."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self.keys = keys_of(0, 1 << problem.log_keys, problem.log_max_key)
        self.rank_keys(1)

    def rank_keys(self, iteration: int) -> int:
        greatest = 1 << self.problem.log_max_key
        self.keys[iteration], self.keys[iteration + 10] = iteration, greatest - iteration
        self.ordered = np.sort(self.keys)
        occurrences = np.bincount(self.ordered, minlength=greatest)
        ranks = np.cumsum(occurrences) - occurrences
        found = ranks[self.keys[list(self.problem.test_indices)]]
        return int(np.count_nonzero(found == np.array(self.problem.ranks_at(iteration))))

    def run(self) -> None:
        self.right = sum(self.rank_keys(iteration) for iteration in range(1, 11))

    def figures(self) -> list[complex]:
        wrong = np.count_nonzero(np.diff(self.ordered) < 0)
        return [self.right, int(wrong), int(self.ordered.sum(dtype=np.int64))]


class Multigrid:
    def __init__(self, problem: Any) -> None:
        self.problem = problem
        size = 1 << problem.log_size
        self.v = np.zeros(3 * (size,))
        for place, charge in charges_of(*extremes(grid_level(0, 1, size), size)).items():
            self.v.flat[place] = charge
        self.begin()
        self.cycle()
        self.begin()

    def begin(self) -> None:
        self.u = np.zeros_like(self.v)

    def cycle(self) -> None:
        """A V-cycle, and the residual before it."""
        smoother = self.problem.smoother
        rs = [self.v - stencil(self.u, LAPLACIAN)]
        while len(rs[-1]) > 2:
            rs.append(stencil(rs[-1], (1 / 2, 1 / 4, 1 / 8, 1 / 16), slice(1, None, 2)))
        u = stencil(rs.pop(), smoother)
        while rs:
            r, u = rs.pop(), interpolated(u)
            if rs:
                r = r - stencil(u, LAPLACIAN)
                u = u + stencil(r, smoother)
        self.u = self.u + u
        self.u = self.u + stencil(self.v - stencil(self.u, LAPLACIAN), smoother)

    def run(self) -> None:
        for _ in range(self.problem.iterations):
            self.cycle()
        r = self.v - stencil(self.u, LAPLACIAN)
        self.norm = sqrt((r**2).mean())

    def figures(self) -> list[complex]:
        return [self.norm]


LAPLACIAN = (-8 / 3, 0, 1 / 6, 1 / 12)


def stencil(grid: Array, weights: tuple[float, ...], every: slice = slice(None)) -> Array:
    """Of a periodic grid: sums of the 27 points around each, or each of some, weighted by their
    distance."""
    padded = np.pad(grid, 1, mode="wrap")
    sums = np.zeros((4, *grid[every, every, every].shape))
    for place in product(range(3), repeat=3):
        distance = sum(step != 1 for step in place)
        if weights[distance]:
            shifted = padded[tuple(slice(step, step + len(grid)) for step in place)]
            sums[distance] += shifted[every, every, every]
    return sum(weight * near for weight, near in zip(weights, sums, strict=True) if weight)


def interpolated(coarse: Array) -> Array:
    """The grid of twice the size; the points of the coarse one are its odd ones."""
    for axis in range(3):
        means = (coarse + np.roll(coarse, 1, axis)) / 2
        shape = [size * (1 + (axis == at)) for at, size in enumerate(coarse.shape)]
        coarse = np.stack((means, coarse), axis=axis + 1).reshape(shape)
    return coarse
