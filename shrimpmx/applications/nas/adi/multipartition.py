"""The multipartition: a grid cut into q³ cells for q² ranks, of which each has q.

The cells of a rank lie on a diagonal, so that each layer of cells, across any axis, has one cell of
every rank: a sweep through the layers keeps all ranks busy. The neighbours of a rank's cells along
an axis all belong to one other rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod

AXES = range(3)
GHOSTS = 2  # layers of its neighbours' points that a cell keeps on each side

Triple = tuple[int, int, int]
Box = tuple[slice, slice, slice]


@dataclass(frozen=True)
class Cell:
    """A box of points: its place among the `side`³ cells, its first point, its points per axis."""

    place: Triple
    side: int
    low: Triple
    size: Triple

    def at_boundary(self, axis: int) -> tuple[bool, bool]:
        """Whether its first and its last layer are the grid's."""
        return self.place[axis] == 0, self.place[axis] == self.side - 1

    @cached_property
    def inside(self) -> Box:
        """Its points off the boundary of the grid, in an array with ghost layers."""
        x, y, z = (
            slice(GHOSTS + first, GHOSTS + self.size[axis] - last)
            for axis in AXES
            for first, last in [self.at_boundary(axis)]
        )
        return x, y, z

    @cached_property
    def inside_shape(self) -> Triple:
        """How many points are off the boundary, per axis."""
        x, y, z = (extent.stop - extent.start for extent in self.inside)
        return x, y, z

    def lines(self, axis: int) -> int:
        """How many lines along an axis have points off the boundary."""
        return prod(self.inside_shape) // self.inside_shape[axis]

    @cached_property
    def owned(self) -> Box:
        """All of its points, in an array with ghost layers."""
        x, y, z = (slice(GHOSTS, GHOSTS + size) for size in self.size)
        return x, y, z


def widened(box: Box, axis: int, layers: int) -> Box:
    """The box with so many more layers at both ends of an axis."""
    extents = list(box)
    extents[axis] = slice(box[axis].start - layers, box[axis].stop + layers)
    return extents[0], extents[1], extents[2]


@dataclass(frozen=True)
class Multipartition:
    """What one of the ranks has of a grid of points³."""

    points: int
    ranks: int
    rank: int

    @staticmethod
    def takes(points: int, ranks: int) -> bool:
        """Whether there are cells for so many ranks: a square, and three points at least."""
        return isqrt(ranks) ** 2 == ranks and points // isqrt(ranks) > GHOSTS

    @property
    def side(self) -> int:
        """Cells along an axis, and cells of a rank."""
        return isqrt(self.ranks)

    @property
    def origin(self) -> tuple[int, int]:
        """The place of the rank's first cell in the layer z = 0."""
        return self.rank % self.side, self.rank // self.side

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The rank's cells, upwards in z."""
        x, y = self.origin
        places = (
            ((x + layer) % self.side, (y - layer) % self.side, layer) for layer in range(self.side)
        )
        return tuple(self._cell(place) for place in places)

    def _cell(self, place: Triple) -> Cell:
        size, excess = divmod(self.points, self.side)
        x, y, z = (axis * size + min(axis, excess) for axis in place)
        width, depth, height = (size + (axis < excess) for axis in place)
        return Cell(place, self.side, (x, y, z), (width, depth, height))

    def along(self, axis: int) -> tuple[int, ...]:
        """The numbers of the rank's cells in the order of their layers across an axis."""
        return tuple(sorted(range(self.side), key=lambda cell: self.cells[cell].place[axis]))

    def neighbour(self, axis: int, step: int) -> int:
        """The rank that has the next cells along an axis, upwards (step 1) or downwards (-1)."""
        x, y = self.origin
        moved = ((x + step, y), (x, y + step), (x - step, y + step))[axis]
        return moved[0] % self.side + moved[1] % self.side * self.side
