"""Algorithms of MPI's collectives that an environment variable takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

TEXT = """
    from shrimpmx.mpi.selection import algorithm_name
    assert algorithm_name("alltoall", 1 << 20, size) == "bruck"
    assert algorithm_name("bcast", 1 << 20, size) == "binomial"
    mine, theirs = 10 * rank + np.arange(size), np.empty(size, int)
    world.Alltoall(mine, theirs)
    assert (theirs == 10 * np.arange(size) + rank).all()
    """


def test_an_environment_variable_takes_an_algorithm(tmp_path: Path) -> None:
    words = ["-x", "SHRIMPMX_MPI_ALLTOALL=bruck"]
    assert main(["mpirun", "-n", "3", *words, *mpi_program(tmp_path, TEXT, MPI4PY)]) == 0


def test_a_name_that_is_none_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["-x", "SHRIMPMX_MPI_ALLTOALL=brook"]
    assert main(["mpirun", "-n", "1", *words, *mpi_program(tmp_path, "", MPI4PY)]) == 2
    assert capfd.readouterr().err.splitlines()[1] == (
        "shrimpmx: SHRIMPMX_MPI_ALLTOALL=brook: the algorithms of alltoall are all-at-once, bruck, "
        "pairwise"
    )
