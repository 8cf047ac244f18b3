"""A rank that ends, however it ends, while others wait for it: the run ends with its exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main
from shrimpmx.native.segment import list_segments

pytest.importorskip("mpi4py")

# Later than a run without such a thread is given up.
LATE_S = 6

LEFT = {
    "sys.exit": ("sys.exit(4)", 4),
    "the end of the program": ("sys.exit()", 1),
    "an exception of a thread": (
        "threading.Thread(target=lambda: 1 / 0).start(); sys.exit(6)",
        6,
    ),
    "os._exit": ("os._exit(7)", 7),
    "os._exit at exit": ("atexit.register(os._exit, 6); sys.exit()", 6),
    "a signal": ("os.kill(os.getpid(), signal.SIGTERM)", 128 + 15),
}


@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("waits", ["world.Barrier()", "world.recv(tag=9)"])
@pytest.mark.parametrize("how", LEFT)
def test_a_rank_that_ends_while_others_wait_for_it_ends_the_run(
    how: str, waits: str, engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    act, code = LEFT[how]
    text = f"""
        import atexit, os, signal, sys, threading

        world.Barrier()
        if rank == 1:
            {act}
        {waits}
        """
    program = mpi_program(tmp_path, text, MPI4PY)
    words = ("-n", "3", "--engine", engine, "--timeout", f"{patient(60):g}")
    assert main(["mpirun", *words, *program]) == code
    said = capfd.readouterr().err.splitlines()[-1]
    assert said.startswith("shrimpmx: rank1 (pid ")
    assert not [name for name, owner, _ in list_segments() if owner.pid == os.getpid()]


@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("other", [0, 1])
def test_a_thread_that_sends_late_ends_a_wait_for_a_rank_that_has_not_ended(
    other: int, engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = f"""
        import sys, threading, time

        def late():
            time.sleep({LATE_S})
            world.send("late", dest=1, tag=9)

        if rank == {other}:
            threading.Thread(target=late).start()
        if rank == 1:
            print(world.recv(source={other}, tag=9), flush=True)
        """
    program = mpi_program(tmp_path, text, MPI4PY)
    assert main(["mpirun", "-n", "2", "--engine", engine, *program]) == 0
    assert capfd.readouterr().out == "late\n"
