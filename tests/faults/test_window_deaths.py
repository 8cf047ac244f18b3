"""Ranks killed while others need their windows or their parts of files: the run ends, and leaves
nothing behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
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


# Each turn overwrites a file of 600 000 bytes, of which each rank has every third number. The
# four bytes of a number are alike.
WRITING = """
import os
import signal
import threading

file = MPI.File.Open(world, PLACE, MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_view(4 * rank, MPI.INT, MPI.INT.Create_vector(50_000, 1, size).Commit())
for turn in range(TURNS):
    if rank == 1 and turn == 3:
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGKILL)).start()
    file.Write_at_all(0, np.full(50_000, turn % 100 * 0x01010101, "i4"))
file.Close()
"""


@pytest.mark.nightly("a rank killed under loss", but=1)
@pytest.mark.parametrize("loss", [0.0, 0.01])
def test_a_rank_killed_in_a_collective_write_tears_no_number(
    loss: float, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "data"
    text = f"PLACE, TURNS = {str(place)!r}, 100_000\n" + WRITING
    words = ["-n", "3", "--nodes", "3", "--set", f"loss={loss}"]
    assert main(["mpirun", *words, *mpi_program(tmp_path, text, MPI4PY)]) == 137
    said = capfd.readouterr().err
    assert "rank1" in said
    assert "was killed by SIGKILL, and the others were ended" in said
    numbers = np.fromfile(place, "u4")
    assert len(numbers) == 150_000
    assert np.isin(numbers, np.arange(100) * 0x01010101).all()


def test_a_collective_write_survives_loss(tmp_path: Path) -> None:
    place = tmp_path / "data"
    text = f"PLACE, TURNS = {str(place)!r}, 2\n" + WRITING
    words = ["--engine", "simulated", "-n", "3", "--nodes", "3", "--set", "loss=0.01"]
    assert main(["mpirun", *words, *mpi_program(tmp_path, text, MPI4PY)]) == 0
    assert place.read_bytes() == bytes([1]) * 600_000
