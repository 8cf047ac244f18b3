"""FT, 3-D fast Fourier transform: a diffusion equation, solved in Fourier space.

RNR-94-007, 2.5 (kernel FT). Ranks hold slabs of planes (z) in space, and of rows (y) in Fourier
space, which is NPB's 1-D layout: an Alltoall of the whole grid stands between the transforms along
x and y and those along z. numpy transforms the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, pi, prod
from typing import cast

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from shrimpmx.applications.nas.kernel import Check, Kernel, Outcome, timed
from shrimpmx.applications.nas.random_numbers import seed_after, uniform

ALPHA = 1e-6
CHECKSUM_POINTS = 1024
WITHIN = 1e-12

Complex = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class Problem:
    """A grid of `shape` points (z, y, x), and the checksum of each iteration."""

    shape: tuple[int, int, int]
    checksums: tuple[complex, ...]


PROBLEMS = {
    "S": Problem(
        (64, 64, 64),
        (
            5.546087004964e2 + 4.845363331978e2j,
            5.546385409189e2 + 4.865304269511e2j,
            5.546148406171e2 + 4.883910722336e2j,
            5.545423607415e2 + 4.901273169046e2j,
            5.544255039624e2 + 4.917475857993e2j,
            5.542683411902e2 + 4.932597244941e2j,
        ),
    ),
    "W": Problem(
        (32, 128, 128),
        (
            5.673612178944e2 + 5.293246849175e2j,
            5.631436885271e2 + 5.282149986629e2j,
            5.594024089970e2 + 5.270996558037e2j,
            5.560698047020e2 + 5.260027904925e2j,
            5.530898991250e2 + 5.249400845633e2j,
            5.504159734538e2 + 5.239212247086e2j,
        ),
    ),
    "A": Problem(
        (128, 256, 256),
        (
            5.046735008193e2 + 5.114047905510e2j,
            5.059412319734e2 + 5.098809666433e2j,
            5.069376896287e2 + 5.098144042213e2j,
            5.077892868474e2 + 5.101336130759e2j,
            5.085233095391e2 + 5.104914655194e2j,
            5.091487099959e2 + 5.107917842803e2j,
        ),
    ),
    "B": Problem(
        (256, 256, 512),
        (
            5.177643571579e2 + 5.077803458597e2j,
            5.154521291263e2 + 5.088249431599e2j,
            5.146409228649e2 + 5.096208912659e2j,
            5.142378756213e2 + 5.101023387619e2j,
            5.139626667737e2 + 5.103976610617e2j,
            5.137423460082e2 + 5.105948019802e2j,
            5.135547056878e2 + 5.107404165783e2j,
            5.133910925466e2 + 5.108576573661e2j,
            5.132470705390e2 + 5.109577278523e2j,
            5.131197729984e2 + 5.110460304483e2j,
            5.130070319283e2 + 5.111252433800e2j,
            5.129070537032e2 + 5.111968077718e2j,
            5.128182883502e2 + 5.112616233064e2j,
            5.127393733383e2 + 5.113203605551e2j,
            5.126691062020e2 + 5.113735928093e2j,
            5.126064276004e2 + 5.114218460548e2j,
            5.125504076570e2 + 5.114656139760e2j,
            5.125002331720e2 + 5.115053595966e2j,
            5.124551951846e2 + 5.115415130407e2j,
            5.124146770029e2 + 5.115744692211e2j,
        ),
    ),
}


class FourierTransform(Kernel[Problem]):
    """FT."""

    name = "FT"
    title = "3-D Fourier transform"
    problems = PROBLEMS

    def ranks_rule(self) -> str:
        return "a power of two, at most the number of planes (S 64, W 32, A 128, B 256)"

    def takes_ranks(self, ranks: int, problem: Problem) -> bool:
        return ranks >= 1 and ranks & (ranks - 1) == 0 and ranks <= min(problem.shape[:2])

    def memory_bytes(self, problem: Problem, ranks: int) -> int:
        return 16 * prod(problem.shape) * (3 if ranks > 1 else 2)

    def describe(self, problem: Problem) -> str:
        z, y, x = problem.shape
        return f"{x} x {y} x {z} points, {len(problem.checksums)} iterations"

    def run(self, problem: Problem, world: MPI.Intracomm) -> Outcome:
        slabs = Slabs(problem.shape, world)
        slabs.begin()  # as NPB does, once untimed, to touch all memory
        sums = np.empty(len(problem.checksums), np.complex128)
        with timed(world) as timer:
            slabs.begin()
            for step in range(len(sums)):
                slabs.evolve()
                slabs.transform_back()
                world.Reduce(slabs.checksum(), sums[step : step + 1])
        world.Bcast(sums)
        checks = tuple(
            Check(f"checksum {step + 1}", complex(sums[step]), official, WITHIN)
            for step, official in enumerate(problem.checksums)
        )
        return Outcome(timer.seconds, operations(problem), checks)


def operations(problem: Problem) -> float:
    """Floating-point operations in all, by NPB's formula."""
    points = prod(problem.shape)
    each = 5.23518 + 7.21113 * log(points)
    return points * (14.8157 + 7.19641 * log(points) + each * len(problem.checksums))


def decay(count: int) -> npt.NDArray[np.float64]:
    """Factor of one time step for each wave number along an axis, shape (count,)."""
    wave_number = np.fft.fftfreq(count, 1 / count)
    return cast(npt.NDArray[np.float64], np.exp(-4 * ALPHA * pi**2 * wave_number**2))


class Slabs:
    """This rank's part of the grid: in space (planes, ny, nx), in Fourier space (nz, rows, nx)."""

    def __init__(self, shape: tuple[int, int, int], world: MPI.Intracomm) -> None:
        nz, ny, nx = self.shape = shape
        self.world = world
        self.planes, self.rows = nz // world.size, ny // world.size
        self.space = np.empty((self.planes, ny, nx), np.complex128)
        self.spectrum = np.empty((nz, self.rows, nx), np.complex128)
        self._lines = np.empty((nx, nz), np.complex128)
        if world.size > 1:
            self._exchanged = np.empty((world.size, self.planes, self.rows, nx), np.complex128)

    def begin(self) -> None:
        """Sets the spectrum to that of the random field, and computes the decay of a time step."""
        nz, ny, nx = self.shape
        mine = slice(self.world.rank * self.rows, (self.world.rank + 1) * self.rows)
        # Each factor twice: for the real and for the imaginary part.
        self._decay_yx = np.outer(decay(ny)[mine], decay(nx).repeat(2))
        self._decay_z = decay(nz)
        for z, plane in enumerate(self.space, self.planes * self.world.rank):
            numbers = uniform(2 * ny * nx, seed_after(2 * ny * nx * z))
            plane[...] = numbers.view(np.complex128).reshape(ny, nx)
        self.transform()

    def evolve(self) -> None:
        """One time step, in Fourier space."""
        factors = np.empty_like(self._decay_yx)
        for z, plane in enumerate(self.spectrum.view(np.float64)):
            np.multiply(self._decay_yx, self._decay_z[z], out=factors)
            plane *= factors

    def transform(self) -> None:
        """From space, which it overwrites, to the spectrum."""
        for plane in self.space:
            np.fft.fft(plane, axis=1, out=plane)
            np.fft.fft(plane, axis=0, out=plane)
        z_lines = self.space
        if self.world.size > 1:
            for block, rows in self._blocks():
                block[...] = self.space[:, rows]
            self.world.Alltoall(self._exchanged, self.spectrum)
            z_lines = self.spectrum
        for row in range(self.rows):
            np.fft.fft(z_lines[:, row].T, out=self._lines)
            self.spectrum[:, row] = self._lines.T

    def transform_back(self) -> None:
        """From the spectrum to space, without the division by the number of points."""
        z_lines = self.space.reshape(self.spectrum.shape)
        for row in range(self.rows):
            np.fft.ifft(self.spectrum[:, row].T, norm="forward", out=self._lines)
            z_lines[:, row] = self._lines.T
        if self.world.size > 1:
            self.world.Alltoall(z_lines, self._exchanged)
            for block, rows in self._blocks():
                self.space[:, rows] = block
        for plane in self.space:
            np.fft.ifft(plane, axis=0, norm="forward", out=plane)
            np.fft.ifft(plane, axis=1, norm="forward", out=plane)

    def checksum(self) -> npt.NDArray[np.complex128]:
        """This rank's part of the sum of 1024 points, over the number of points; shape (1,)."""
        nz, ny, nx = self.shape
        point = np.arange(1, CHECKSUM_POINTS + 1)
        z = 5 * point % nz - self.planes * self.world.rank
        here = (z >= 0) & (z < self.planes)
        values = self.space[z[here], (3 * point % ny)[here], (point % nx)[here]]
        return np.array([values.sum() / prod(self.shape)])

    def _blocks(self) -> Iterator[tuple[Complex, slice]]:
        """The block that goes to each rank, or comes from it, and the rows that it holds."""
        for rank, block in enumerate(self._exchanged):
            yield block, slice(rank * self.rows, (rank + 1) * self.rows)
