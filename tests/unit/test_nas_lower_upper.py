"""LU: how the grid is divided, the order of a sweep, and the implicit operator without matrices."""

from __future__ import annotations

import numpy as np
import pytest

from shrimpmx.applications.nas.adi.block_solve import set_diffusion_jacobian, set_flux_jacobian
from shrimpmx.applications.nas.exact_solution import Array
from shrimpmx.applications.nas.flow.cell import AXES
from shrimpmx.applications.nas.lu.implicit_operator import ImplicitOperator
from shrimpmx.applications.nas.lu.wavefronts import Wavefronts, grid_of_ranks, pencil_of, takes

BOX = (3, 5, 4)
POINTS, STEP, WEIGHT = 12, 0.01, 1.2
RANDOM = np.random.default_rng(12)


@pytest.mark.parametrize("ranks", [1, 2, 8, 16])
def test_the_pencils_of_all_ranks_are_the_grid(ranks: int) -> None:
    covered = np.zeros((14, 14), int)
    for rank in range(ranks):
        pencil = pencil_of(14, ranks, rank)
        x, y, z = (
            slice(low, low + size) for low, size in zip(pencil.low, pencil.size, strict=True)
        )
        assert z == slice(0, 14)
        covered[x, y] += 1
    assert np.all(covered == 1)
    assert pencil_of(14, 16, 6).size == (3, 4, 14)


@pytest.mark.parametrize(("ranks", "sides"), [(1, (1, 1)), (2, (2, 1)), (4, (2, 2)), (8, (4, 2))])
def test_the_grid_of_ranks_is_as_wide_or_twice_as_wide(ranks: int, sides: tuple[int, int]) -> None:
    assert grid_of_ranks(ranks) == (*sides, 1)


@pytest.mark.parametrize(
    ("ranks", "taken"), [(0, False), (1, True), (3, False), (16, True), (32, False)]
)
def test_it_takes_powers_of_two_whose_pencils_are_three_points_wide(
    ranks: int, taken: bool
) -> None:
    assert takes(POINTS, ranks) is taken


@pytest.mark.parametrize("way", [1, -1])
def test_a_wavefront_follows_all_that_its_points_depend_on(way: int) -> None:
    wavefronts = Wavefronts(BOX)
    course = wavefronts.up if way == 1 else wavefronts.down
    done = np.zeros(BOX, bool)
    places = list(zip(*np.unravel_index(wavefronts.order, BOX), strict=True))
    for front in course.fronts:
        here = places[front.points]
        for i, j, k in here:
            before = (i - way, j, k), (i, j - way, k), (i, j, k - way)
            inside = [
                place
                for place in before
                if all(0 <= at < n for at, n in zip(place, BOX, strict=True))
            ]
            assert all(done[place] for place in inside)
        for place in here:
            assert not done[place]
            done[place] = True
    assert done.all()


@pytest.mark.parametrize("way", [1, -1])
def test_columns_know_the_one_before_and_the_edges(way: int) -> None:
    ni, nj, _ = BOX
    wavefronts = Wavefronts(BOX)
    course = wavefronts.up if way == 1 else wavefronts.down
    fronts = course.fronts[::way]
    column = {}
    for front in fronts:
        points = wavefronts.order[front.points]
        for number, place in zip(
            range(front.columns.start, front.columns.stop),
            np.stack(np.unravel_index(points, BOX), axis=1),
            strict=True,
        ):
            column[int(place[0]), int(place[1])] = number
    assert sorted(column.values()) == list(range(ni * nj))
    for (i, j), number in column.items():
        assert course.before[0][number] == column.get((i - way, j), ni * nj + j)
        assert course.before[1][number] == column.get((i, j - way), ni * nj + i)
    last_i, last_j = (ni - 1, nj - 1) if way == 1 else (0, 0)
    assert list(course.last[0]) == [column[last_i, j] for j in range(nj)]
    assert list(course.last[1]) == [column[i, last_j] for i in range(ni)]
    assert list(course.delays[0])[::way] == list(range(nj))


def jacobians(state: Array) -> tuple[Array, Array]:
    """Those of the fluxes and of the diffused terms, each (3, 5, 5, points)."""
    velocity, energy, volume = state[1:4] / state[0], state[4] / state[0], 1 / state[0]
    flux, diffusion = np.zeros((2, 3, 5, 5, state.shape[1]))
    for axis in AXES:
        set_flux_jacobian(flux[axis], velocity, energy, axis, STEP * (POINTS - 1) / 2)
        set_diffusion_jacobian(
            diffusion[axis], velocity, energy, volume, axis, STEP * (POINTS - 1.0) ** 2
        )
    return flux, diffusion


def test_the_operator_is_that_of_the_jacobians() -> None:
    state = RANDOM.random((5, 7)) + 1
    change = RANDOM.random((5, 4))
    at = slice(2, 6)
    flux, diffusion = (matrices[..., at] for matrices in jacobians(state))
    operator = ImplicitOperator(POINTS, STEP, WEIGHT)
    operator.linearise(state)
    for way in (1, -1):
        coupled = np.empty((3, 5, 4))
        operator.couple(at, change, way, coupled)
        expected = np.einsum("arcp,cp->arp", WEIGHT * (way * flux + diffusion), change)
        np.testing.assert_allclose(coupled, expected, rtol=1e-12)
    own = np.eye(5)[:, :, None] + 2 * diffusion.sum(axis=0)
    right = np.einsum("rcp,cp->rp", own, change)
    operator.solve(at, right)
    np.testing.assert_allclose(right, change, rtol=1e-12)
