"""The messages by which MG's ranks learn the points around their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from shrimpmx.applications.nas.grid_levels import GridLevel

Grid = npt.NDArray[np.float64]
# Part of a grid, by the rank that it comes from or goes to, and the tag.
Layers = dict[tuple[int, int], tuple[slice, ...]]

UPWARDS, DOWNWARDS = 0, 1  # tags
AXES = (2, 1, 0)  # NPB's order


class GhostExchange:
    """One rank's, for grids of one level. All ranks call the same method."""

    def __init__(self, level: GridLevel, world: MPI.Intracomm) -> None:
        self._level = level
        self._world = world

    def fill(self, grid: Grid) -> None:
        """Writes the ghosts. The layers along an axis have the ghosts of the axes before, so that
        those at edges and corners come too. NPB: comm3."""
        if not self._level.has_points:
            return
        for number in AXES:
            axis = self._level.axes[number]
            across = (slice(1, -1),) * number
            received: Layers = {
                (axis.below, UPWARDS): (*across, slice(0, 1)),
                (axis.above, DOWNWARDS): (*across, slice(-1, None)),
            }
            sent: Layers = {
                (axis.above, UPWARDS): (*across, slice(-2, -1)),
                (axis.below, DOWNWARDS): (*across, slice(1, 2)),
            }
            self._transfer(grid, received, sent)

    def hand_on(self, grid: Grid) -> None:
        """Gives points, with their ghosts, to ranks that have none of the coarser grid, or takes
        them. NPB: comm3_ex."""
        if not self._level.has_points:
            return
        for number in AXES:
            axis = self._level.axes[number]
            across = (slice(None),) * number
            received: Layers = {
                (axis.below, UPWARDS): (*across, slice(0, 2)),
                (axis.above, DOWNWARDS): (*across, slice(-1, None)),
            }
            sent: Layers = {
                (axis.above, UPWARDS): (*across, slice(-2, None)),
                (axis.below, DOWNWARDS): (*across, slice(1, 2)),
            }
            self._transfer(grid, received if axis.takes else {}, sent if axis.gives else {})

    def _transfer(self, grid: Grid, received: Layers, sent: Layers) -> None:
        requests, arriving = [], []
        for (rank, tag), layers in received.items():
            view = grid[layers]
            if rank == self._world.rank:
                view[:] = grid[sent.pop((rank, tag))]
            else:
                buffer = view if view.flags.c_contiguous else np.empty(view.shape)
                requests.append(self._world.Irecv(buffer, rank, tag))
                arriving.append((view, buffer))
        for (rank, tag), layers in sent.items():
            leaving = np.ascontiguousarray(grid[layers])
            requests.append(self._world.Isend(leaving, rank, tag))
        MPI.Request.Waitall(requests)
        for view, buffer in arriving:
            if buffer is not view:
                view[:] = buffer
