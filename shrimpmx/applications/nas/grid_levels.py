"""How MG's ranks share its grids: in blocks of three dimensions, as NPB has it.

Axes are those of NumPy arrays, which are NPB's in reverse order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GridAxis:
    """One rank's part of a grid along one axis."""

    points: int  # its own, without ghosts
    first: int  # the place of its first point in the whole grid
    below: int  # the rank with the points before its own; the grid is periodic
    above: int
    # On a grid with fewer points along the axis than ranks, every second rank, every fourth and
    # so on has one. It gives points of the next finer grid to its neighbours there, which take.
    gives: bool
    takes: bool


@dataclass(frozen=True)
class GridLevel:
    """One rank's part of a grid."""

    axes: tuple[GridAxis, GridAxis, GridAxis]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of its array: beside its points there is a ghost of the neighbours' at each end."""
        return tuple(axis.points + 2 for axis in self.axes)

    @property
    def has_points(self) -> bool:
        """Whether the rank has a part at all."""
        return all(axis.points for axis in self.axes)


def process_grid(ranks: int) -> tuple[int, int, int]:
    """Ranks along each axis; `ranks` is a power of two."""
    log_ranks = ranks.bit_length() - 1
    last = log_ranks // 3
    middle = (log_ranks - last) // 2
    return 1 << log_ranks - last - middle, 1 << middle, 1 << last


def grid_level(rank: int, ranks: int, size: int) -> GridLevel:
    """The part of `rank` of a grid of `size` points along each axis, a power of two."""
    parts = process_grid(ranks)
    place = np.unravel_index(rank, parts)
    numbers = np.arange(ranks).reshape(parts)
    lines = (
        numbers[:, place[1], place[2]],
        numbers[place[0], :, place[2]],
        numbers[place[0], place[1], :],
    )
    one, two, three = (
        _axis(int(at), line.tolist(), size) for at, line in zip(place, lines, strict=True)
    )
    return GridLevel((one, two, three))


def _axis(place: int, line: list[int], size: int) -> GridAxis:
    """Of the rank at a place of a line of ranks along the axis."""
    stride = max(1, len(line) // size)  # between ranks that have points
    has_points = (place + 1) % stride == 0
    # Whether it has points of the coarser grid, too, if not all ranks do.
    shared, also_coarser = size <= len(line), (place + 1) % (2 * stride) == 0
    return GridAxis(
        points=max(1, size // len(line)) if has_points else 0,
        first=place * size // len(line),
        below=line[(place - stride) % len(line)],
        above=line[(place + stride) % len(line)],
        gives=shared and also_coarser,
        takes=shared and has_points and not also_coarser,
    )
