"""MG's operators on one rank's part of a grid, ghosts around it (RNR-94-007, kernel MG).

Their coefficients are by distance: a point itself, its 6 neighbours by faces, 12 by edges, 8 by
corners. Operators work on some planes at a time, so that what they add up stays in a cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Grid = npt.NDArray[np.float64]
Coefficients = tuple[float, float, float, float]

LAPLACIAN: Coefficients = (-8 / 3, 0, 1 / 6, 1 / 12)  # A
BLOCK = 1 << 16  # points, about, that are worked on at once

_INNER = slice(1, -1)


def residual(u: Grid, v: Grid, out: Grid) -> None:
    """Writes v - A u to the points of `out`, which may be `v`. NPB: resid."""
    self, _, edges, corners = LAPLACIAN
    for planes in _planes(u):
        faces, diagonals = _sums_across(u, planes)
        total = faces[..., :-2] + faces[..., 2:]
        total += diagonals[..., _INNER]
        total *= edges
        more = diagonals[..., :-2] + diagonals[..., 2:]
        more *= corners
        total += more
        total += np.multiply(u[planes, _INNER, _INNER], self, out=more)
        np.subtract(v[planes, _INNER, _INNER], total, out=out[planes, _INNER, _INNER])


def smooth(r: Grid, u: Grid, coefficients: Coefficients) -> None:
    """Adds S r to the points of `u`; S has no corners. NPB: psinv."""
    self, face, edge, _ = coefficients
    for planes in _planes(r):
        faces, diagonals = _sums_across(r, planes)
        total = faces[..., :-2] + faces[..., 2:]
        total += diagonals[..., _INNER]
        total *= edge
        more = faces[..., _INNER]
        more += r[planes, _INNER, :-2]
        more += r[planes, _INNER, 2:]
        more *= face
        total += more
        total += np.multiply(r[planes, _INNER, _INNER], self, out=more)
        u[planes, _INNER, _INNER] += total


def restrict(fine: Grid, coarse: Grid) -> None:
    """Writes means of the points of `fine`, weighted by distance, to those of `coarse`: 1/2, faces
    1/4, edges 1/8, corners 1/16. NPB: rprj3."""
    # The first ghost is of no use, but if it surrounds the only point.
    fine = fine[tuple(slice(int(points > 3), None) for points in fine.shape)]
    for planes in _blocks(1, len(coarse) - 1, fine[:2].size):
        part = fine[2 * planes.start - 2 : 2 * planes.stop - 1]
        for axis in range(3):
            part = _thinned(part, axis)
        np.multiply(part, 0.5, out=coarse[planes, _INNER, _INNER])


def interpolate(coarse: Grid, fine: Grid) -> None:
    """Adds what lies between the points of `coarse`, by linear interpolation, to `fine`, ghosts
    too. NPB: interp."""
    for planes in _blocks(0, len(coarse) - 1, fine[:2].size):
        part = coarse[planes.start : planes.stop + 1]
        for axis in (2, 1, 0):
            part = _spread(part, axis, fine.shape[axis] == 3)
        fine[2 * planes.start : 2 * planes.start + len(part)] += part


def norm(r: Grid) -> float:
    """The sum of squares of its points."""
    total = 0.0
    for planes in _planes(r):
        points = r[planes, _INNER, _INNER]
        total += float(np.einsum("ijk,ijk->", points, points))
    return total


def _blocks(first: int, end: int, plane: int) -> Iterator[slice]:
    """Divides planes of so many points each."""
    some = max(1, BLOCK // plane)
    for begin in range(first, end, some):
        yield slice(begin, min(begin + some, end))


def _planes(grid: Grid) -> Iterator[slice]:
    """Its planes without ghosts, some at a time."""
    return _blocks(1, len(grid) - 1, grid[0].size)


def _sums_across(grid: Grid, planes: slice) -> tuple[Grid, Grid]:
    """Across the last axis: sums of the four neighbours by faces of each point of these planes, and
    of the four by edges. Points at both ends of the last axis are included, others' ghosts not."""
    around = grid[planes.start - 1 : planes.stop + 1]
    pairs = around[:, :-2] + around[:, 2:]
    faces = pairs[1:-1] + around[:-2, _INNER]
    faces += around[2:, _INNER]
    return faces, pairs[:-2] + pairs[2:]


def _thinned(grid: Grid, axis: int) -> Grid:
    """Every second one along an axis, and half of its neighbours."""
    grid = grid.swapaxes(0, axis)
    means = grid[:-2:2] + grid[2::2]
    means *= 0.5
    means += grid[1:-1:2]
    return means.swapaxes(0, axis)


def _spread(grid: Grid, axis: int, ghosts_between: bool) -> Grid:
    """Along an axis all of the grid and means of neighbours in turn; or, where a rank has one point
    of both grids, that and the means at both sides of it."""
    shape = list(grid.shape)
    shape[axis] = 2 * shape[axis] - 2 - ghosts_between
    spread = np.empty(shape)
    out, grid = spread.swapaxes(0, axis), grid.swapaxes(0, axis)
    out[int(ghosts_between) :: 2] = grid[int(ghosts_between) : -1]
    means = np.add(grid[:-1], grid[1:], out=out[int(not ghosts_between) :: 2])
    means *= 0.5
    return spread
