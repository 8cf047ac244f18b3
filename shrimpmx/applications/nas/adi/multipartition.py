"""The multipartition: a grid cut into q³ cells for q² ranks, of which each has q.

The cells of a rank lie on a diagonal, so that each layer of cells, across any axis, has one cell of
every rank: a sweep through the layers keeps all ranks busy. The neighbours of a rank's cells along
an axis all belong to one other rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt

from shrimpmx.applications.nas.flow.cell import GHOSTS, Cell


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
    def face_room(self) -> int:
        """The lines through a cell for which NPB's BT has room."""
        return (self.points // self.side + 1) ** 2

    @property
    def origin(self) -> tuple[int, int]:
        """The place of the rank's first cell in the layer z = 0."""
        return self.rank % self.side, self.rank // self.side

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The rank's cells, upwards in z."""
        side = self.side
        x, y = self.origin
        places = (((x + layer) % side, (y - layer) % side, layer) for layer in range(side))
        return tuple(Cell.at(place, (side, side, side), self.points) for place in places)

    def along(self, axis: int) -> tuple[int, ...]:
        """The numbers of the rank's cells in the order of their layers across an axis."""
        return tuple(sorted(range(self.side), key=lambda cell: self.cells[cell].place[axis]))

    def neighbour(self, axis: int, step: int) -> int:
        """The rank that has the next cells along an axis, upwards (step 1) or downwards (-1)."""
        x, y = self.origin
        moved = ((x + step, y), (x, y + step), (x - step, y + step))[axis]
        return moved[0] % self.side + moved[1] % self.side * self.side
