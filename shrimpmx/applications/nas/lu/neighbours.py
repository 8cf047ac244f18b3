"""A pencil's neighbours, and the exchange of layers with them."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from shrimpmx.applications.nas.exact_solution import Array
from shrimpmx.applications.nas.flow.cell import GHOSTS, Cell
from shrimpmx.applications.nas.flow.state import rows_first


class Neighbours:
    """The ranks next to a pencil: along x and along y, the one before and the one behind."""

    def __init__(self, pencil: Cell, world: MPI.Intracomm) -> None:
        self.pencil = pencil
        self.world = world
        self.ranks = [
            tuple(
                MPI.PROC_NULL if at_boundary else world.rank + way * stride
                for way, at_boundary in zip((-1, 1), pencil.at_boundary(axis), strict=True)
            )
            for axis, stride in enumerate((1, pencil.sides[0]))
        ]

    def exchange_layers(self, u: Array) -> None:
        """Fills the ghost layers between pencils, a message from each neighbour. Collective."""
        for axis, (before, behind) in enumerate(self.ranks):
            box = list(self.pencil.owned)
            box[axis] = slice(None)
            rows = rows_first(u[:, *box], axis)
            for target, leaving, source, ghosts in (
                (behind, rows[-2 * GHOSTS : -GHOSTS], before, rows[:GHOSTS]),
                (before, rows[GHOSTS : 2 * GHOSTS], behind, rows[-GHOSTS:]),
            ):
                arriving = np.array(ghosts, order="C")
                self.world.Sendrecv(
                    np.ascontiguousarray(leaving), target, recvbuf=arriving, source=source
                )
                ghosts[:] = arriving
