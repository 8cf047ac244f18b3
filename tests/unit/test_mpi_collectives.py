"""Collectives of MPI against numpy: worlds of one to nine ranks in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.mpi_collectives import everything
from support.mpi_worlds import run_worlds

from shrimpmx.mpi.selection import COLLECTIVE_OF, PREFIX, TABLE, algorithms_select

COUNTS = (0, 1, 7, 5000)
KINDS = ("sum", "max", "affine")
# As many as the collective with most of them has.
TURNS = 3


def algorithms_of(collective: str) -> list[str]:
    return sorted({row[1] for row in TABLE if row[0] == collective})


@pytest.fixture(params=range(TURNS))
def turn(request: pytest.FixtureRequest) -> Iterator[int]:
    """In turn each of its algorithms is taken by each collective."""
    number = int(request.param)
    names = {collective: algorithms_of(collective) for collective in COLLECTIVE_OF}
    algorithms_select(
        {PREFIX + each.upper(): some[number % len(some)] for each, some in names.items()}
    )
    yield number
    algorithms_select({})


def test_every_algorithm_has_its_turn() -> None:
    assert max(len(algorithms_of(collective)) for collective in COLLECTIVE_OF) == TURNS


@pytest.mark.parametrize("size", range(1, 10))
def test_every_collective(size: int) -> None:
    assert run_worlds(size, everything(COUNTS, KINDS)) == [True] * size


@pytest.mark.parametrize("size", range(2, 10))
@pytest.mark.usefixtures("turn")
def test_every_algorithm(size: int) -> None:
    assert run_worlds(size, everything(COUNTS, KINDS)) == [True] * size


@pytest.mark.parametrize("seed", [1, 2])
def test_every_collective_with_losses(seed: int) -> None:
    assert run_worlds(5, everything((3, 2000), KINDS), loss=0.05, seed=seed) == [True] * 5


@pytest.mark.usefixtures("turn")
def test_every_algorithm_with_losses() -> None:
    assert run_worlds(6, everything((3, 2000), KINDS), loss=0.05) == [True] * 6
