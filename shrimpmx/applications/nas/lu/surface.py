"""The surface integral that LU verifies."""

from __future__ import annotations

import numpy as np

from shrimpmx.applications.nas.flow.cell import AXES
from shrimpmx.applications.nas.flow.state import CellState, Gas


def surface_integral(state: CellState) -> float:
    """This rank's part of the integral of the pressure over the faces of a box within the grid, by
    the trapezoidal rule: points of a face weigh 1, those of its edges a half, corners a quarter."""
    cell, points = state.cell, state.points
    ends = (1, points - 2), (1, points - 3), (2, points - 2)  # by axis, as NPB's indices less 1
    weights, faces = [], []
    for low, size, (first, last) in zip(cell.low, cell.size, ends, strict=True):
        place = np.arange(low, low + size)
        faces.append(((place == first) | (place == last)).astype(float))
        weights.append(((place >= first) & (place <= last)) - faces[-1] / 2)
    pressure = Gas.of(state.u[:, *cell.owned]).pressure
    total = 0.0
    for axis in AXES:
        factors = [*weights[:axis], faces[axis], *weights[axis + 1 :]]
        total += np.einsum("xyz,x,y,z->", pressure, *factors, optimize=True)
    return float(total) / (points - 1) ** 2
