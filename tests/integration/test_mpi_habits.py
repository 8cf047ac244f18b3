"""Ranks of mpi4py that do what real programs do: compute for long, fork, and set hooks."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main


def test_an_exception_ends_the_run_also_with_a_hook_of_ones_own(tmp_path: Path) -> None:
    text = """
import sys
sys.excepthook = lambda *error: print("mine", file=sys.stderr)
if rank == 1:
    raise ValueError
world.recv(source=left)
"""
    command = mpi_program(tmp_path, text, MPI4PY)
    assert main(["mpirun", "-n", "2", "--timeout", f"{patient(60):g}", *command]) == 1


@pytest.mark.nightly("seconds of silence")
def test_a_rank_that_computes_is_not_given_up(tmp_path: Path) -> None:
    """It acknowledges nothing meanwhile."""
    text = """
import time
if rank == 0:
    world.send("task", 1)
    assert world.recv(source=1) == "done"
else:
    world.recv(source=0)
    time.sleep(2)
    world.send("done", 0)
"""
    few = ["--set", "resends_max=100", "--set", "resend_delay_ns=5000000"]
    command = mpi_program(tmp_path, text, MPI4PY)
    assert main(["mpirun", "-n", "2", "--timeout", f"{patient(60):g}", *few, *command]) == 0


def test_a_forked_child_shares_no_array_with_its_rank(tmp_path: Path) -> None:
    text = """
import os
mine = np.zeros(1000)
pid = os.fork()
if pid == 0:
    mine[:] = 1
    os._exit(0)
os.waitpid(pid, 0)
assert (mine == 0).all()
"""
    assert main(["mpirun", "-n", "1", *mpi_program(tmp_path, text, MPI4PY)]) == 0
