"""Collectives of MPI against numpy: worlds of one to nine ranks in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from support.mpi_collectives import everything
from support.mpi_worlds import COMM_WORLD, Calls, data_of, run_worlds, type_of

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


@pytest.mark.nightly("each number of ranks", but=3)
@pytest.mark.parametrize("size", range(1, 10))
def test_every_collective(size: int) -> None:
    assert run_worlds(size, everything(COUNTS, KINDS)) == [True] * size


@pytest.mark.nightly("each number of ranks", but=6)
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


def test_a_rank_that_waits_for_its_buffer_goes_on_with_its_collectives() -> None:
    """Rank 2 receives what rank 0's buffer holds when all ranks have come to the barrier."""
    buffer = (ctypes.c_byte * (1 << 18))()
    data = np.zeros(1 << 17, np.uint8)

    def work(mpi: Calls) -> bool:
        request, into = ctypes.c_int(), np.ones_like(data)
        if mpi.rank == 0:
            mpi.Buffer_attach(buffer, len(buffer))
            mpi.Ibarrier(COMM_WORLD, request)
            mpi.Bsend(data_of(data), len(data), type_of(data), 2, 0, COMM_WORLD)
            mpi.Buffer_detach((ctypes.c_void_p * 1)(), ctypes.c_longlong())
        else:
            mpi.Ibarrier(COMM_WORLD, request)
        mpi.Wait(request, 1)
        if mpi.rank == 2:
            mpi.Recv(data_of(into), len(into), type_of(into), 0, 0, COMM_WORLD, 1)
        return mpi.rank != 2 or not into.any()

    assert run_worlds(4, work) == [True] * 4
