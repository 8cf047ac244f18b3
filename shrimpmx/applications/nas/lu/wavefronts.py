"""The order in which a sweep visits the points of a box: by wavefronts i + j + k.

A point depends on the one before it along each axis, and these lie in the wavefront before: so the
points of a wavefront are computed at once. Columns are the points (i, j) of a plane, sorted by
i + j. The points of a wavefront then are a slice of an array in the order of wavefronts, and belong
to a slice of the columns.

Ranks share the grid: each has a pencil along z, in a grid of ranks in x and y.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shrimpmx.applications.nas.flow.cell import Cell, Triple

Indices = npt.NDArray[np.intp]


class Wavefront(NamedTuple):
    """Where its points are in an array in the order of wavefronts, and their columns."""

    points: slice
    columns: slice


@dataclass(frozen=True)
class Course:
    """One way through a box. Per axis x and y: for each column the one before it, which beyond the
    edge of the box is the number of columns plus the place along the edge; the columns at the far
    edge; and for each place along an edge how many wavefronts it is behind the first of its plane.
    """

    fronts: tuple[Wavefront, ...]
    before: tuple[Indices, Indices]
    last: tuple[Indices, Indices]
    delays: tuple[Indices, Indices]


class Wavefronts:
    """The wavefronts of a box of shape (ni, nj, nk)."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        ni, nj, nk = self.shape = shape
        i, j = np.indices((ni, nj)).reshape(2, -1)
        by_sum = np.argsort(i + j, kind="stable")
        i, j = i[by_sum], j[by_sum]
        number = np.arange(ni + nj + nk - 2)
        begin, end = (np.searchsorted(i + j, last, "right") for last in (number - nk, number))
        point = np.concatenate(([0], np.cumsum(end - begin)))
        fronts = tuple(
            Wavefront(slice(*points), slice(*columns))
            for *columns, points in zip(begin, end, pairwise(point), strict=True)
        )
        flat = (i * nj + j) * nk - i - j
        self.columns = ni * nj
        # Where each point is in an array of the box's shape, flat.
        self.order: Indices = np.concatenate(
            [flat[front.columns] + number for number, front in enumerate(fronts)]
        )
        column = np.empty((ni + 2, nj + 2), np.intp)
        column[i + 1, j + 1] = np.arange(self.columns)
        column[0] = column[-1] = self.columns + np.arange(-1, nj + 1)
        column[1:-1, 0] = column[1:-1, -1] = self.columns + np.arange(ni)
        along = np.arange(nj), np.arange(ni)
        inner = column[1:-1, 1:-1]
        self.up = Course(
            fronts, (column[i, j + 1], column[i + 1, j]), (inner[-1], inner[:, -1]), along
        )
        self.down = Course(
            fronts[::-1],
            (column[i + 2, j + 1], column[i + 1, j + 2]),
            (inner[0], inner[:, 0]),
            (along[0][::-1], along[1][::-1]),
        )


LEAST_POINTS = 3  # of a pencil along x and y


def grid_of_ranks(ranks: int) -> Triple:
    """Ranks along each axis, for a power of two: along x as many as along y, or twice as many."""
    along_y = 1 << (ranks.bit_length() - 1) // 2
    return ranks // along_y, along_y, 1


def takes(points: int, ranks: int) -> bool:
    """Whether there are pencils for so many ranks."""
    if ranks < 1 or ranks & (ranks - 1):
        return False
    return points // max(grid_of_ranks(ranks)) >= LEAST_POINTS


def pencil_of(points: int, ranks: int, rank: int) -> Cell:
    """The pencil of a rank."""
    sides = grid_of_ranks(ranks)
    return Cell.at((rank % sides[0], rank // sides[0], 0), sides, points)
