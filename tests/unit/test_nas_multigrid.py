"""MG: its operators by their definition, point by point, and how ranks share the grids."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from shrimpmx.applications.nas.grid_charges import charges_of, extremes, set_charges
from shrimpmx.applications.nas.grid_levels import grid_level, process_grid
from shrimpmx.applications.nas.grid_operators import (
    LAPLACIAN,
    Coefficients,
    interpolate,
    norm,
    residual,
    restrict,
    smooth,
)
from shrimpmx.applications.nas.random_numbers import uniform

Grid = npt.NDArray[np.float64]

INNER = (slice(1, -1),) * 3
RANKS = [1, 2, 4, 8, 16, 64]


def random_grid(*points: int) -> Grid:
    return np.random.default_rng(1).random([axis + 2 for axis in points])


def weighted(grid: Grid, by_distance: Coefficients) -> Grid:
    """Of each point: the sum of all around it, weighted by the number of axes in which they
    differ."""
    total = np.zeros([axis - 2 for axis in grid.shape])
    for step in product((-1, 0, 1), repeat=3):
        part = [slice(1 + one, n - 1 + one) for one, n in zip(step, grid.shape, strict=True)]
        total += by_distance[np.count_nonzero(step)] * grid[tuple(part)]
    return total


@pytest.mark.parametrize("points", [(8, 4, 2), (1, 1, 1), (70, 40, 34)])
def test_residual_and_smoother_weigh_neighbours_by_distance(points: tuple[int, ...]) -> None:
    u, v, r = random_grid(*points), random_grid(*points) + 1, random_grid(*points)
    residual(u, v, r)
    assert np.allclose(r[INNER], v[INNER] - weighted(u, LAPLACIAN))
    residual(u, v, v)
    assert (v[INNER] == r[INNER]).all()
    corrected = u[INNER] + weighted(r, (-0.4, 0.03, -0.02, 0))
    smooth(r, u, (-0.4, 0.03, -0.02, 0))
    assert np.allclose(u[INNER], corrected)
    assert norm(u) == pytest.approx((u[INNER] ** 2).sum())


@pytest.mark.parametrize("points", [(8, 4, 2), (70, 40, 34)])
def test_restriction_weighs_the_points_around_every_second_one(points: tuple[int, ...]) -> None:
    fine, coarse = random_grid(*points), random_grid(*(one // 2 for one in points))
    restrict(fine, coarse)
    means = weighted(fine, (1 / 2, 1 / 4, 1 / 8, 1 / 16))
    assert np.allclose(coarse[INNER], means[1::2, 1::2, 1::2])


@pytest.mark.parametrize("points", [(4, 2, 1), (35, 20, 34)])
def test_interpolation_is_exact_for_linear_functions(points: tuple[int, ...]) -> None:
    def linear(*axes: npt.NDArray[np.float64]) -> Grid:
        one, two, three = np.meshgrid(*axes, indexing="ij")
        return 1 + 2 * one + 3 * two - 4 * three

    coarse = linear(*(np.arange(0.0, 2 * one + 4, 2) for one in points))
    fine = np.ones([2 * one + 2 for one in points])
    interpolate(coarse, fine)
    assert np.allclose(fine, 1 + linear(*(np.arange(2.0 * one + 2) for one in points)))


def test_where_both_grids_have_one_point_it_is_the_same() -> None:
    fine, coarse = random_grid(1, 1, 4), random_grid(1, 1, 2)
    restrict(fine, coarse)
    means = weighted(fine, (1 / 2, 1 / 4, 1 / 8, 1 / 16))
    assert np.allclose(coarse[INNER], means[:, :, 1::2])
    fine[:] = 0
    interpolate(coarse, fine)
    assert np.allclose(fine[1, 1, 0::2], coarse[1, 1, :3])
    assert np.allclose(fine[0, 1, 0::2], (coarse[0, 1, :3] + coarse[1, 1, :3]) / 2)
    assert np.allclose(fine[2, 1, 0::2], (coarse[2, 1, :3] + coarse[1, 1, :3]) / 2)


@pytest.mark.parametrize("ranks", RANKS)
def test_every_point_of_each_grid_has_one_rank_and_its_neighbours_are_next_to_it(
    ranks: int,
) -> None:
    assert np.prod(process_grid(ranks)) == ranks
    for size in (2, 4, 8, 16):
        levels = [grid_level(rank, ranks, size) for rank in range(ranks)]
        owners = np.full((size, size, size), -1)
        for rank, level in enumerate(levels):
            if level.has_points:
                own = tuple(slice(axis.first, axis.first + axis.points) for axis in level.axes)
                assert (owners[own] == -1).all()
                owners[own] = rank
        assert owners.min() >= 0
        for rank in np.unique(owners):
            for number, axis in enumerate(levels[rank].axes):
                corner = [each.first for each in levels[rank].axes]
                corner[number] = (axis.first - 1) % size
                assert owners[tuple(corner)] == axis.below
                corner[number] = (axis.first + axis.points) % size
                assert owners[tuple(corner)] == axis.above


def test_ranks_that_a_coarse_grid_leaves_out_take_from_those_that_stay() -> None:
    for rank in range(64):
        for one, coarser in zip(
            grid_level(rank, 64, 4).axes, grid_level(rank, 64, 2).axes, strict=True
        ):
            assert one.gives == bool(coarser.points)
            assert one.takes == (not coarser.points)
    assert not any(axis.gives or axis.takes for axis in grid_level(5, 64, 8).axes)


@pytest.mark.parametrize("ranks", RANKS)
def test_charges_are_where_the_random_numbers_are_extreme(ranks: int) -> None:
    size = 16
    numbers = uniform(size**3)
    expected = np.zeros(size**3)
    expected[np.argsort(numbers)[:10]] = -1
    expected[np.argsort(numbers)[-10:]] = 1
    levels = [grid_level(rank, ranks, size) for rank in range(ranks)]
    found = [extremes(level, size) for level in levels]
    states, places = (np.concatenate(column) for column in zip(*found, strict=True))
    charges = charges_of(states, places)
    for level in levels:
        grid = np.zeros(level.shape)
        set_charges(grid, level, size, charges)
        own = tuple(slice(axis.first, axis.first + axis.points) for axis in level.axes)
        assert (grid[INNER] == expected.reshape((size,) * 3)[own]).all()
