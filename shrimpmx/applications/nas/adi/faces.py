"""The exchange of faces: each cell gets its neighbours' layers of points next to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from mpi4py import MPI

from shrimpmx.applications.nas.adi.multipartition import Multipartition
from shrimpmx.applications.nas.exact_solution import Array
from shrimpmx.applications.nas.flow.cell import AXES, GHOSTS, Box, Cell

UP, DOWN = 1, -1


def exchange_faces(
    world: MPI.Intracomm, partition: Multipartition, fields: Sequence[Array]
) -> None:
    """Fills the ghost layers between cells, by one message to each of the six neighbours. `fields`
    has an array per cell, its last three axes those of space. Collective."""
    if partition.side == 1:
        return
    ways = list(product(AXES, (UP, DOWN)))
    gaps = [ghost_layers(partition, fields, axis, way) for axis, way in ways]
    arrived = [np.empty(sum(gap.size for gap in gaps_of_way)) for gaps_of_way in gaps]
    requests = [
        world.Irecv(buffer, partition.neighbour(axis, -way), tag)
        for tag, ((axis, way), buffer) in enumerate(zip(ways, arrived, strict=True))
    ]
    for tag, (axis, way) in enumerate(ways):
        faces = np.concatenate(
            [face.ravel() for face in outer_layers(partition, fields, axis, way)]
        )
        requests.append(world.Isend(faces, partition.neighbour(axis, way), tag))
    MPI.Request.Waitall(requests)
    for gaps_of_way, buffer in zip(gaps, arrived, strict=True):
        begin = 0
        for gap in gaps_of_way:
            gap[:] = buffer[begin : begin + gap.size].reshape(gap.shape)
            begin += gap.size


def outer_layers(
    partition: Multipartition, fields: Sequence[Array], axis: int, way: int
) -> list[Array]:
    """Views of the layers that a message up or down an axis takes along, cell by cell."""
    return [
        field[..., *layers(cell, axis, cell.size[axis] if way == UP else GHOSTS)]
        for cell, field in zip(partition.cells, fields, strict=True)
        if not cell.at_boundary(axis)[way == UP]
    ]


def ghost_layers(
    partition: Multipartition, fields: Sequence[Array], axis: int, way: int
) -> list[Array]:
    """Views of the layers that a message up or down an axis fills, cell by cell."""
    return [
        field[..., *layers(cell, axis, 0 if way == UP else cell.size[axis] + GHOSTS)]
        for cell, field in zip(partition.cells, fields, strict=True)
        if not cell.at_boundary(axis)[way == DOWN]
    ]


def layers(cell: Cell, axis: int, begin: int) -> Box:
    """So many layers as there are ghosts, from `begin` on, of the cell's own lines."""
    extents = list(cell.owned)
    extents[axis] = slice(begin, begin + GHOSTS)
    return extents[0], extents[1], extents[2]
