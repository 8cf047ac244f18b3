"""How ranks share LU's grid: each has a pencil along z, in a grid of ranks in x and y."""

from __future__ import annotations

from shrimpmx.applications.nas.flow.cell import Cell, Triple

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
