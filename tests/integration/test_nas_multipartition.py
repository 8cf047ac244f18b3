"""BT and SP: nine ranks, whose cells have two other ranks for neighbours, compute what one does."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

pytest.importorskip("mpi4py")

# 14 points are 5, 5 and 4. After so few steps the norms are not NPB's, which must be noticed.
TOGETHER_AND_ALONE = """
from dataclasses import replace
from math import isclose

from shrimpmx.applications.nas import __main__ as nas

for name in ("BT", "SP"):
    kernel = nas.kernel_named(name)
    problem = replace(kernel.problems["S"], points=14, steps=2)
    together = kernel.run(problem, world).checks
    alone = kernel.run(problem, MPI.COMM_SELF).checks
    assert len(together) == 10
    for ours, one in zip(together, alone, strict=True):
        assert isclose(ours.computed, one.computed, rel_tol=1e-9), (ours, one)
        assert not ours.holds
"""


@pytest.mark.nightly("each number of ranks")
def test_nine_ranks_compute_what_one_does(tmp_path: Path) -> None:
    program = mpi_program(tmp_path, TOGETHER_AND_ALONE, MPI4PY)
    assert main(["mpirun", "-n", "9", "--nodes", "3", *program]) == 0
