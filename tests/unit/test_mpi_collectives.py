"""Collectives of MPI against numpy: worlds of one to nine ranks in this process."""

from __future__ import annotations

import pytest
from support.mpi_collectives import everything
from support.mpi_worlds import run_worlds

COUNTS = (0, 1, 7, 5000)
KINDS = ("sum", "max", "affine")


@pytest.mark.parametrize("size", range(1, 10))
def test_every_collective(size: int) -> None:
    assert run_worlds(size, everything(COUNTS, KINDS)) == [True] * size


@pytest.mark.parametrize("seed", [1, 2])
def test_every_collective_with_losses(seed: int) -> None:
    assert run_worlds(5, everything((3, 2000), KINDS), loss=0.05, seed=seed) == [True] * 5
