"""BT and SP: how the grid is divided, the terms of the equations, and the solution along lines."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from shrimpmx.applications.nas.adi import characteristics
from shrimpmx.applications.nas.adi.block_solve import (
    BlockLines,
    set_diffusion_jacobian,
    set_flux_jacobian,
    solve_blocks,
)
from shrimpmx.applications.nas.adi.lines import Lines
from shrimpmx.applications.nas.adi.multipartition import Multipartition
from shrimpmx.applications.nas.adi.penta_solve import PentadiagonalLines, fourth_differences
from shrimpmx.applications.nas.exact_solution import C1345, Array
from shrimpmx.applications.nas.flow.cell import AXES, Cell
from shrimpmx.applications.nas.flow.right_hand_side import (
    DIFFUSION,
    DISSIPATION,
    diffused,
    exact_forcing,
    fluxes,
    right_hand_side,
)
from shrimpmx.applications.nas.flow.state import CellState, Gas

POINTS = 12
STEP = 0.01
EVERYWHERE = (slice(None), slice(None), slice(None))
RANDOM = np.random.default_rng(12)


def cells_by_place(
    ranks: int, points: int = POINTS
) -> dict[tuple[int, int, int], tuple[int, Cell]]:
    return {
        cell.place: (rank, cell)
        for rank in range(ranks)
        for cell in Multipartition(points, ranks, rank).cells
    }


def whole_grid() -> CellState:
    [cell] = Multipartition(POINTS, 1, 0).cells
    return CellState(cell, POINTS)


@pytest.mark.parametrize("ranks", [1, 4, 9, 16])
def test_the_cells_of_all_ranks_are_the_grid(ranks: int) -> None:
    covered = np.zeros((POINTS + 2,) * 3, int)
    for _, cell in cells_by_place(ranks, len(covered)).values():
        x, y, z = (slice(low, low + size) for low, size in zip(cell.low, cell.size, strict=True))
        covered[x, y, z] += 1
    assert np.all(covered == 1)


@pytest.mark.parametrize("ranks", [4, 9, 16])
def test_each_rank_has_a_cell_in_each_layer_and_one_neighbour_on_each_side(ranks: int) -> None:
    cells = cells_by_place(ranks)
    side = Multipartition(POINTS, ranks, 0).side
    for rank, axis in product(range(ranks), AXES):
        partition = Multipartition(POINTS, ranks, rank)
        layers = [partition.cells[number].place[axis] for number in partition.along(axis)]
        assert layers == list(range(side))
        for cell, way in product(partition.cells, (1, -1)):
            place = list(cell.place)
            place[axis] += way
            if 0 <= place[axis] < side:
                owner, _ = cells[place[0], place[1], place[2]]
                assert owner == partition.neighbour(axis, way)


@pytest.mark.parametrize(("ranks", "taken"), [(1, True), (2, False), (16, True), (25, False)])
def test_it_takes_squares_whose_cells_have_three_points(ranks: int, taken: bool) -> None:
    assert Multipartition.takes(POINTS, ranks) is taken


def test_the_exact_solution_with_its_forcing_does_not_change() -> None:
    state = whole_grid()
    forcing = exact_forcing(state)
    changing = right_hand_side(state, forcing)
    state.u = state.exact()
    state.gas = Gas.of(state.u)
    np.testing.assert_allclose(right_hand_side(state, forcing), 0, atol=1e-11)
    assert np.abs(changing).max() > 1


@pytest.mark.parametrize("ranks", [1, 9])
def test_slabs_make_no_difference(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for _, cell in cells_by_place(ranks).values():
        state = CellState(cell, POINTS)
        whole = exact_forcing(state)
        monkeypatch.setattr("shrimpmx.applications.nas.flow.right_hand_side.SLAB_POINTS", 1)
        np.testing.assert_array_equal(exact_forcing(state), whole)
        monkeypatch.undo()


@pytest.mark.parametrize("axis", AXES)
def test_jacobians_are_derivatives_of_the_terms(axis: int) -> None:
    u = whole_grid().u[:, 2:4, 2:4, 2:4]
    gas = Gas.of(u)
    lines = u[0].size
    flux, diffusion = np.zeros((2, 5, 5, lines))
    velocity = gas.velocity.reshape(3, lines)
    energy = (u[4] * gas.inverse_density).ravel()
    volume = gas.inverse_density.ravel()
    set_flux_jacobian(flux, velocity, energy, axis, 1.0)
    set_diffusion_jacobian(diffusion, velocity, energy, volume, axis, (POINTS - 1.0) ** 2)
    for component in range(5):
        change = np.zeros_like(u)
        change[component] = 1e-6
        more, less = u + change, u - change
        slope = fluxes(more, Gas.of(more), axis, EVERYWHERE)
        slope -= fluxes(less, Gas.of(less), axis, EVERYWHERE)
        np.testing.assert_allclose(
            flux[:, component], slope.reshape(5, lines) / 2e-6, rtol=1e-6, atol=1e-7
        )
        slope = diffused(more, Gas.of(more), axis, EVERYWHERE, POINTS)
        slope -= diffused(less, Gas.of(less), axis, EVERYWHERE, POINTS)
        np.testing.assert_allclose(
            diffusion[:, component], slope.reshape(5, lines) / 2e-6, rtol=1e-6, atol=1e-5
        )


def test_blocks_are_solved_line_by_line() -> None:
    matrices = RANDOM.random((5, 5, 7)) + 5 * np.eye(5)[:, :, None]
    right = RANDOM.random((5, 6, 7))
    solution = np.linalg.solve(np.moveaxis(matrices, 2, 0), np.moveaxis(right, 2, 0))
    solve_blocks(matrices, right)
    np.testing.assert_allclose(right, np.moveaxis(solution, 0, 2), rtol=1e-12)


def in_parts(solver: type[Lines], axis: int, ranks: int, right: Array) -> list[Array]:
    """Solves the lines along an axis through the cells at the lower end of both other axes; returns
    the solution in each cell."""
    cells = [cell for _, cell in cells_by_place(ranks).values()]
    cells = [cell for cell in cells if sum(cell.place) == cell.place[axis]]
    cells.sort(key=lambda cell: cell.place[axis])
    states = [CellState(cell, POINTS) for cell in cells]
    whole = whole_grid()
    for state in states:
        state.u[:] = whole.u[:, *(slice(low, low + size + 4) for low, size in bounds(state.cell))]
        state.gas = Gas.of(state.u)
        state.rhs[:] = right[:, *(slice(low, low + size) for low, size in inside(state.cell))]
    parts = [solver(state, axis, STEP) for state in states]
    handed = np.zeros((*solver.handed_on, states[0].cell.lines(axis)))
    for part in parts:
        handed = part.eliminate(handed)
    handed = np.zeros((*solver.handed_back, states[0].cell.lines(axis)))
    for part in reversed(parts):
        handed = part.substitute(handed)
    return [state.rhs for state in states]


def bounds(cell: Cell) -> list[tuple[int, int]]:
    return list(zip(cell.low, cell.size, strict=True))


def inside(cell: Cell) -> list[tuple[int, int]]:
    """First point off the boundary, counted from there, and number of points, per axis."""
    return [(max(low - 1, 0), size) for low, size in zip(cell.low, cell.inside_shape, strict=True)]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("solver", [BlockLines, PentadiagonalLines])
def test_lines_cut_into_cells_have_the_same_solution(solver: type[Lines], axis: int) -> None:
    right = RANDOM.random((5, *(POINTS - 2,) * 3))
    [whole] = in_parts(solver, axis, 1, right)
    parts = in_parts(solver, axis, 16, right)
    ends = parts[0].shape[1:]
    box = [slice(None) if number == axis else slice(ends[number]) for number in AXES]
    np.testing.assert_allclose(np.concatenate(parts, 1 + axis), whole[:, *box], rtol=1e-12)


def along(field: Array, axis: int) -> Array:
    """The values at the points of one line from boundary to boundary, (points, ...)."""
    box = [slice(2, -2) if number == axis else 5 for number in AXES]
    return np.asarray(np.moveaxis(field[..., *box], -1, 0))


@pytest.mark.parametrize("axis", AXES)
def test_block_lines_solve_the_implicit_equations(axis: int) -> None:
    state, right = whole_grid(), RANDOM.random((5, *(POINTS - 2,) * 3))
    u = along(state.u, axis).T
    flux, diffusion = np.zeros((2, 5, 5, POINTS))
    velocity, energy = u[1:4] / u[0], u[4] / u[0]
    set_flux_jacobian(flux, velocity, energy, axis, STEP * (POINTS - 1) / 2)
    set_diffusion_jacobian(diffusion, velocity, energy, 1 / u[0], axis, STEP * (POINTS - 1) ** 2)
    matrix = np.zeros((POINTS, 5, POINTS, 5))
    for row in range(1, POINTS - 1):
        matrix[row, :, row] = np.eye(5) + 2 * diffusion[..., row]
        matrix[row, :, row - 1] = -flux[..., row - 1] - diffusion[..., row - 1]
        matrix[row, :, row + 1] = flux[..., row + 1] - diffusion[..., row + 1]
    inner = matrix[1:-1, :, 1:-1].reshape((POINTS - 2) * 5, -1)
    [solution] = in_parts(BlockLines, axis, 1, right)
    box = [slice(None) if number == axis else 2 for number in AXES]
    there = right[:, *box].T.ravel()
    np.testing.assert_allclose(inner @ solution[:, *box].T.ravel(), there, rtol=1e-10)


@pytest.mark.parametrize("axis", AXES)
def test_pentadiagonal_lines_solve_the_implicit_equations(axis: int) -> None:
    state, right = whole_grid(), RANDOM.random((5, *(POINTS - 2,) * 3))
    speed, sound = along(state.gas.velocity[axis], axis), along(state.gas.sound, axis)
    diffusion = STEP * (POINTS - 1) ** 2 * (DIFFUSION[axis] + C1345 / along(state.u[0], axis))
    [solution] = in_parts(PentadiagonalLines, axis, 1, right)
    box = [slice(None) if number == axis else 2 for number in AXES]
    for component, sign in enumerate((0, 0, 0, 1, -1)):
        convection = STEP * (POINTS - 1) / 2 * (speed + sign * sound)
        matrix = np.zeros((POINTS, POINTS + 4))  # with two columns beyond each end
        for row in range(1, POINTS - 1):
            matrix[row, row : row + 5] = STEP * DISSIPATION * fourth_differences(POINTS)[row - 1]
            matrix[row, row + 2] += 1 + 2 * diffusion[row]
            matrix[row, row + 1] -= convection[row - 1] + diffusion[row - 1]
            matrix[row, row + 3] += convection[row + 1] - diffusion[row + 1]
        back = matrix[1:-1, 3:-3] @ solution[component, *box]
        np.testing.assert_allclose(back, right[component, *box], rtol=1e-10)


def test_the_characteristic_variables_lead_back_to_the_state() -> None:
    state = whole_grid()
    change = RANDOM.random(state.rhs.shape)
    state.rhs[:] = change
    for step in ("to_x", "from_x_to_y", "from_y_to_z", "from_z"):
        state.rhs = np.stack(getattr(characteristics, step)(state))
    np.testing.assert_allclose(state.rhs, change, rtol=1e-10)
