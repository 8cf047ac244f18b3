"""How ranks of mpi4py end, under each waiting strategy, and that nothing is left of them."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from support.conditions import patient, wait_until
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main
from shrimpmx.cluster.engine.diagnosis import process_state
from shrimpmx.native.segment import list_segments
from shrimpmx.settings.strategies import WAIT_NAMES

pytest.importorskip("mpi4py")

# What the last rank does while the others wait for it, and the exit code.
EXITS = {
    "an exception": ("raise KeyError('lost')", 1),
    "os._exit": ("os._exit(7)", 7),
    "a signal": ("os.kill(os.getpid(), signal.SIGSEGV)", 128 + 11),
    "Abort": ("world.Abort(9)", 9),
    "sys.exit where all do": ("sys.exit(5)", 5),
    "the end of the program": ("", 0),
}
# Each strategy with one of the ways, so that all of both are seen.
WAITS = [name for name in WAIT_NAMES if name != "watchdog"]  # that is for a vmmc NIC
CASES = list(zip(WAITS, itertools.cycle(EXITS), strict=False))


@pytest.mark.parametrize(("wait", "how"), CASES, ids=[f"{how}-{wait}" for wait, how in CASES])
def test_a_rank_ends_with_open_requests_and_a_child(
    wait: str, how: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    act, code = EXITS[how]
    text = f"""
        import os, signal, sys, time

        opened = [world.irecv(source=left, tag=77), world.isend(b"x" * 100, dest=right, tag=78)]
        if rank == size - 1:
            source, end = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(end, bytes([MPI.Is_initialized(), MPI.Is_finalized()]))
                while True:
                    time.sleep(1)
            print(child, *os.read(source, 2), flush=True)
        world.Barrier()
        if rank == size - 1 or {code in (0, 5)}:
            {act or "pass"}
        if {code != 0}:
            world.recv(source=size - 1, tag=79)
        """
    words = ("-n", "3", "--timeout", f"{patient(60):g}", "--set", f"wait={wait}")
    assert main(["mpirun", *words, *mpi_program(tmp_path, text, MPI4PY)]) == code
    child, *state = map(int, capfd.readouterr().out.split())
    assert state == [True, True]
    wait_until(lambda: process_state(child) == "gone", "the rank's child is ended")
    assert not [name for name, owner, _ in list_segments() if owner.pid == os.getpid()]


@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_the_death_of_a_rank_is_seen_though_the_shell_that_started_it_goes_on(
    engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = """
        import os, signal

        world.Barrier()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        world.recv(source=1)
        """
    program = " ".join(mpi_program(tmp_path, text, MPI4PY))
    words = ("-n", "2", "--timeout", f"{patient(60):g}", "--engine", engine)
    shell = ("sh", "-c", f"{program}; sleep 3600")
    assert main(["mpirun", *words, *shell]) == 1
    assert "rank1" in capfd.readouterr().err
    assert not [name for name, owner, _ in list_segments() if owner.pid == os.getpid()]


# What a thread of rank 1 raises, and what is said of it.
IN_A_THREAD = {
    "COMM_SELF.Spawn": ("MPI.COMM_SELF.Spawn(sys.executable)", "python -m mpi4py.futures"),
    "a wrong rank": ("world.send(None, dest=size)", "MPI_ERR_RANK"),
    "a call of MPI 4": ("world.Barrier_init()", "Barrier_init needs a function"),
}


@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("how", IN_A_THREAD)
def test_an_error_of_mpi_that_ends_a_thread_ends_the_run(
    engine: str, how: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    act, said = IN_A_THREAD[how]
    text = f"""
        import sys, threading

        def work():
            {act}

        if rank == 1:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        world.Barrier()
        world.recv(source=left)
        """
    words = ("-n", "2", "--timeout", f"{patient(60):g}", "--engine", engine)
    assert main(["mpirun", *words, *mpi_program(tmp_path, text, MPI4PY)]) == 1
    errors = capfd.readouterr().err
    assert said in errors
    assert "rank 1: an error of MPI has ended a thread" in errors
    assert not [name for name, owner, _ in list_segments() if owner.pid == os.getpid()]


def test_other_exceptions_end_their_thread_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = """
        import threading

        def work():
            try:
                world.send(None, dest=size)
            except MPI.Exception:
                stub = NotImplementedError
                raise stub

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        world.Barrier()
        print("over")
        """
    assert main(["mpirun", "-n", "2", *mpi_program(tmp_path, text, MPI4PY)]) == 0
    assert capfd.readouterr().out.split() == ["over", "over"]


def test_an_uncaught_call_of_mpi_4_is_explained(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = "world.Bcast_init(bytearray(8))"
    assert main(["mpirun", "-n", "2", *mpi_program(tmp_path, text, MPI4PY)]) == 1
    assert "MPI.Comm.Bcast_init needs a function" in capfd.readouterr().err
