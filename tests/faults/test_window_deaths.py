"""A rank that is killed while others need its window: the run ends, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

pytest.importorskip("mpi4py")

# Rank 1 is killed within the epoch, in which the others need it.
EPOCHS = {
    "fence": "win.Fence(); world.Barrier(); die(); win.Put(ones, 1, 0); win.Fence()",
    "lock": """
if rank == 1:
    win.Lock(0)
world.Barrier()
die()
win.Lock(0)
""",
    "lock at the dead": """
world.Barrier()
die()
win.Lock(1)
win.Put(ones, 1)
win.Unlock(1)
world.Barrier()
""",
    "group": "g = win.Get_group(); win.Post(g); win.Start(g); die(); win.Complete(); win.Wait()",
}


@pytest.mark.nightly("each epoch on each engine", but=3)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("epoch", EPOCHS)
def test_its_end_ends_the_run(
    epoch: str, engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    head = """
import os
import signal

win, ones = MPI.Win.Allocate(8, 8, comm=world), np.ones(1)

def die():
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    command = mpi_program(tmp_path, head + EPOCHS[epoch], MPI4PY)
    nodes = ["--nodes", "2"] if "lock" not in epoch else ["--nodes", "1"]
    assert main(["mpirun", "--engine", engine, "-n", "3", *nodes, *command]) == 137
    said = capfd.readouterr().err
    assert "rank1" in said
    assert "was killed by SIGKILL, and the others were ended" in said
