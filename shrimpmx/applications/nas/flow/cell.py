"""Cells: the boxes of points into which ranks cut a grid, with layers of neighbours' points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

AXES = range(3)
GHOSTS = 2  # layers of its neighbours' points that a cell keeps on each side

Triple = tuple[int, int, int]
Box = tuple[slice, slice, slice]


@dataclass(frozen=True)
class Cell:
    """A box of points, by axis: its place among the cells, how many cells there are, its first
    point, and how many points it has."""

    place: Triple
    sides: Triple
    low: Triple
    size: Triple

    @classmethod
    def at(cls, place: Triple, sides: Triple, points: int) -> Cell:
        """One of the cells into which a grid of points³ is cut. Where a side does not divide the
        points, the first cells have one more."""
        division = [(at, *divmod(points, side)) for at, side in zip(place, sides, strict=True)]
        x, y, z = (at * size + min(at, rest) for at, size, rest in division)
        width, depth, height = (size + (at < rest) for at, size, rest in division)
        return cls(place, sides, (x, y, z), (width, depth, height))

    def at_boundary(self, axis: int) -> tuple[bool, bool]:
        """Whether its first and its last layer are the grid's."""
        return self.place[axis] == 0, self.place[axis] == self.sides[axis] - 1

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
