"""A rank that ends, however it ends, while others wait for it: the run ends with its exit code."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main
from shrimpmx.native.segment import list_segments

pytest.importorskip("mpi4py")

# Later than a run without such a thread is given up.
LATE_S = 6

THREAD = "thread = threading.Thread(target={}); thread.start(); thread.join()"
WAITS = {
    "world.Barrier()": "MPI_Barrier in MPI_COMM_WORLD, for rank ",
    "world.recv(tag=9)": "MPI_Mprobe from any rank, tag 9, in MPI_COMM_WORLD",
}
# What rank 1 does, the exit code of the run, and how the sentence begins that names it; whether it
# calls MPI_Finalize, so that the sentence tells who waits.
LEFT = {
    "sys.exit": ("sys.exit(4)", 4, "ended with exit code 4", True),
    "the end of the program": ("sys.exit()", 1, "ended", True),
    "an exception of a thread": (THREAD.format("lambda: 1 / 0") + "; sys.exit()", 1, "ended", True),
    "an MPI error in a thread": (
        THREAD.format("lambda: world.send(None, dest=99)"),
        1,
        "ended with exit code 1",
        False,
    ),
    "an exception": ("raise ValueError", 1, "ended with exit code 1", False),
    "os._exit": ("os._exit(7)", 7, "ended with exit code 7", False),
    "os._exit at exit": (
        "atexit.register(os._exit, 6); sys.exit()",
        6,
        "ended with exit code 6",
        False,
    ),
    "os._exit with 0": (
        "os._exit(0)",
        1,
        "ended without MPI_Finalize, or with an open session",
        False,
    ),
    "a signal": ("os.kill(os.getpid(), signal.SIGTERM)", 128 + 15, "was killed by SIGTERM", False),
}


@pytest.mark.nightly("each wait and end", but=2)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("waits", WAITS)
@pytest.mark.parametrize("how", LEFT)
def test_a_rank_that_ends_while_others_wait_for_it_ends_the_run(
    how: str, waits: str, engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    act, code, sentence, tells_who_waits = LEFT[how]
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
    begins = rf"shrimpmx: rank1 \(pid \d+\) {re.escape(sentence)}"
    if tells_who_waits:
        found = re.fullmatch(begins + "(?! with).*: rank0: (.*); rank2: (.*)", said)
        assert found is not None, said
        assert all(waited.startswith(WAITS[waits]) for waited in found.groups()), said
    else:
        assert re.fullmatch(begins + ", and the others were ended", said), said
    assert not [name for name, owner, _ in list_segments() if owner.pid == os.getpid()]


@pytest.mark.nightly("each engine and delay")
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
