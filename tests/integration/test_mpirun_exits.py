"""How ranks of mpi4py end, and with which exit code the run; nothing is left of them."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.conditions import patient, wait_until
from support.mpi_programs import MPI4PY, mpi_program
from support.tree import ROOT

from shrimpmx.cli import main
from shrimpmx.cluster.engine.diagnosis import process_state
from shrimpmx.cluster.rank.signals import ENDING_SIGNALS
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


@pytest.mark.nightly("each child", but=2)
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


# By the rows of the document's table what rank 1 does while rank 0 waits for it, the exit code, and
# what the last line of standard error says.
ENDS = {
    "a rank's exit code": (
        ("raise KeyError('lost')", 1, "rank1 .* exit code 1,"),
        ("os._exit(7)", 7, "rank1 .* exit code 7,"),
        ("sys.exit(4)", 4, "rank1 .* exit code 4, but other ranks"),
        ("MPI.Finalize(); sys.exit(6)", 6, "rank1 .* exit code 6, but other ranks"),
        ("world.Abort(9)", 9, "rank1 .* exit code 9,"),
        ("world.Abort(-1)", 255, "rank1 .* exit code 255,"),
    ),
    "128 + signal": (
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "rank1 .* SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGRTMIN)", 162, "rank1 .* SIGRTMIN"),
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "rank1 .* SIGINT"),
        ("print('to no reader', flush=True); world.recv()", 141, ""),
    ),
    "1": (
        ("os._exit(0)", 1, "rank1 .* without MPI_Finalize"),
        ("sys.exit()", 1, "rank1 .* ended, but other ranks"),
        ("world.Abort(0)", 1, "rank1 .* exit code 1,"),
        ("world.Abort(256)", 1, "rank1 .* exit code 1,"),
    ),
    "2": (("print('to a full disk', flush=True); world.recv()", 2, "cannot be written"),),
    "3": (("world.send(0, dest=0)", 3, "nic failed: OverflowError: no room"),),
    "124": (("while True: pass", 124, "the run did not end within"),),
    "130, 143, 129": (
        ("os.kill(os.getppid(), signal.SIGINT); world.recv()", 130, "interrupted by Ctrl-C"),
        ("os.kill(os.getppid(), signal.SIGTERM); world.recv()", 143, "interrupted by SIGTERM"),
        ("os.kill(os.getppid(), signal.SIGHUP); world.recv()", 129, "interrupted by SIGHUP"),
    ),
}
# A policy that fails with its first packet.
FAILING = """
from shrimpmx.nic.policy import Policy

class Failing(Policy):
    def on_dma_complete(self, now_ns, marked, dma_pending):
        raise OverflowError("no room")
"""


def test_each_exit_code_of_the_document_is_tested() -> None:
    text = (ROOT / "docs" / "mpirun.md").read_text()
    table = text.partition("| exit code | meaning |\n| --- | --- |\n")[2].partition("\n\n")[0]
    assert [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()] == list(ENDS)


@contextmanager
def ending_signals_raise() -> Iterator[None]:
    """As in a process of the command."""
    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    try:
        for number in before:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def standard_output(act: str) -> Iterator[None]:
    """Where what rank 1 prints goes to."""
    if "print(" not in act:
        yield
        return
    before = os.dup(1)
    if "full" in act:
        taken = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, taken = os.pipe()
        os.close(reader)
    os.dup2(taken, 1)
    os.close(taken)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


@pytest.mark.nightly("each kind of end", but=2)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize(("act", "code", "said"), [*itertools.chain(*ENDS.values())])
def test_an_end_has_its_exit_code(
    act: str,
    code: int,
    said: str,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(FAILING)
    text = f"""
        import os, signal, sys

        if rank == 1:
            {act}
        world.recv(source=1)
        """
    limit = 4 if code == 124 else 60
    words = ["-n", "2", "--engine", engine, "--timeout", f"{patient(limit):g}"]
    words += ["--set", "coalescing=own.py:Failing"] * (code == 3)
    with ending_signals_raise(), standard_output(act):
        assert main(["mpirun", *words, *mpi_program(tmp_path, text, MPI4PY)]) == code
    last = [*capfd.readouterr().err.splitlines(), ""][-1 - bool(said)]
    assert re.search(said, last)
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
    "COMM_SELF.Spawn": ("MPI.COMM_SELF.Spawn(sys.executable)", "mpirun --slots S"),
    "a wrong rank": ("world.send(None, dest=size)", "MPI_ERR_RANK"),
    "a call of no MPI": ("world.Revoke()", "Revoke needs a function"),
}


@pytest.mark.nightly("each thread on each engine", but=2)
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
    assert "rank 1: an MPI error ended a thread" in errors
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


def test_an_uncaught_call_of_no_mpi_is_explained(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = "world.Revoke()"
    assert main(["mpirun", "-n", "2", *mpi_program(tmp_path, text, MPI4PY)]) == 1
    assert "MPI.Comm.Revoke needs a function" in capfd.readouterr().err


def test_a_tracer_sees_ends_first() -> None:
    """A process that has ended has no exit code for its parent before its tracer has read it."""
    tracer = [shutil.which("strace") or "", "-f", "--seccomp-bpf", "-e", "execve,exit_group"]
    if not tracer[0] or subprocess.run([*tracer, "true"], capture_output=True).returncode != 0:
        pytest.skip("strace is not installed, or may trace nothing")
    command = [sys.executable, "-m", "shrimpmx", "mpirun", "-n", "4", "--nodes", "1", "true"]
    done = subprocess.run(
        [*tracer, "-o", os.devnull, *command],
        capture_output=True,
        text=True,
        timeout=patient(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr
