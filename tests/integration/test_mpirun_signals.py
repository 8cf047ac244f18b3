"""`shrimpmx mpirun`: the signals that it gets reach the programs of its ranks, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.conditions import patient, wait_until

pytest.importorskip("mpi4py")

# Each rank says when it listens, and with a handler of which signals.
LISTENS = """
import os
import signal
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
heard = []


def hear(number, frame):
    heard.append(number)


def up():
    print(f"up {world.rank}", flush=True)
    world.Barrier()


def say(words):
    print(f"{words} {world.rank}", flush=True)


"""
# A program that computes in steps and saves its state when it is to end.
STEPS = """
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    up()
    while True:
        time.sleep(0.02)
        world.allreduce(1)
except KeyboardInterrupt:
    time.sleep(0.3)
    say("saved")
"""

engines = pytest.mark.parametrize("engine", ["forked", "simulated"])


@contextmanager
def running(
    engine: str, ranks: int, text: str, place: Path, *options: str
) -> Iterator[subprocess.Popen[str]]:
    """A run whose ranks all listen."""
    place.write_text(LISTENS + textwrap.dedent(text))
    words = ["mpirun", "--engine", engine, "-n", str(ranks), *options, sys.executable, str(place)]
    with (
        open(place.with_name("errors"), "w+") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "shrimpmx", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            process_group=0,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for _ in range(ranks):
                assert process.stdout.readline().startswith("up ")
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], place: Path) -> tuple[list[str], str, int]:
    """What the ranks said since, what the launcher did, and its exit code."""
    assert process.stdout is not None
    code = process.wait(patient(60))
    return sorted(process.stdout.readlines()), (place / "errors").read_text(), code


def all_of(words: str, ranks: int) -> list[str]:
    return [f"{words} {rank}\n" for rank in range(ranks)]


@engines
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("to", "ranks"), [("launcher", 4), ("group", 2), ("both", 2)])
def test_ranks_save_their_state_before_they_end(
    to: str, number: signal.Signals, ranks: int, engine: str, tmp_path: Path
) -> None:
    with running(engine, ranks, STEPS, tmp_path / "steps.py", "--grace", f"{patient(20):g}") as run:
        time.sleep(0.2)  # they are somewhere in their steps
        if to != "group":
            run.send_signal(number)
        if to != "launcher":
            os.killpg(run.pid, number)
        said, err, code = ended(run, tmp_path)
    assert said == all_of("saved", ranks)
    assert code == 128 + number
    assert "interrupted by" in err.splitlines()[-1]


@engines
@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT])
def test_a_signal_that_ends_nothing_is_passed_on_once(
    number: signal.Signals, engine: str, tmp_path: Path
) -> None:
    text = f"""
        signal.signal({int(number)}, hear)
        up()
        while not heard:
            time.sleep(0.02)
        time.sleep(0.3)
        world.Barrier()
        say(heard)
        """
    with running(engine, 2, text, tmp_path / "hears.py") as run:
        time.sleep(0.2)
        run.send_signal(number)
        said, _, code = ended(run, tmp_path)
    assert (said, code) == (all_of(str([int(number)]), 2), 0)


@engines
def test_a_signal_without_a_handler_ends_ranks_as_it_ends_any_program(
    engine: str, tmp_path: Path
) -> None:
    with running(engine, 2, "up()\ntime.sleep(1000)", tmp_path / "sleeps.py") as run:
        run.send_signal(signal.SIGUSR1)
        _, err, code = ended(run, tmp_path)
    assert "was killed by SIGUSR1" in err.splitlines()[-1]
    assert code == 128 + signal.SIGUSR1


DEAF = "signal.signal(signal.SIGINT, hear)\nup()\nwhile True:\n    time.sleep(0.1)"


@engines
@pytest.mark.parametrize("how", ["limit", "again"])
def test_ranks_that_do_not_end_are_ended(how: str, engine: str, tmp_path: Path) -> None:
    grace = "0.5" if how == "limit" else "1000"
    with running(engine, 2, DEAF, tmp_path / "deaf.py", "--grace", grace) as run:
        run.send_signal(signal.SIGINT)
        if how == "again":
            time.sleep(1)  # not the same one
            run.send_signal(signal.SIGINT)
        said, err, code = ended(run, tmp_path)
    assert (said, code) == ([], 130)
    assert err.splitlines()[-1] == "shrimpmx: interrupted by Ctrl-C"
    assert ("did not end within 0.5 s of Ctrl-C" in err) == (how == "limit")


@engines
def test_ranks_interrupt_themselves(engine: str, tmp_path: Path) -> None:
    text = """
        import _thread
        up()
        for interrupt in (_thread.interrupt_main, lambda: signal.raise_signal(signal.SIGINT)):
            try:
                interrupt()
                time.sleep(10)
            except KeyboardInterrupt:
                heard.append("interrupted")
        say(heard)
        """
    with running(engine, 2, text, tmp_path / "interrupts.py") as run:
        said, _, code = ended(run, tmp_path)
    assert (said, code) == (all_of("['interrupted', 'interrupted']", 2), 0)


def is_pending(number: signal.Signals, pid: int) -> bool:
    """Whether a signal to a process waits for the process to run."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (pending,) = (int(line.split()[1], 16) for line in lines if line.startswith("ShdPnd"))
    return bool(pending & 1 << (number - 1))


@engines
def test_a_run_stops_and_goes_on_with_its_launcher(engine: str, tmp_path: Path) -> None:
    text = f"""
        signal.signal(signal.SIGTSTP, hear)
        with open("{tmp_path}/" + str(world.rank), "w") as file:
            file.write(str(os.getpid()))
        up()
        while not heard:
            time.sleep(0.02)
        say("goes on")
        """
    with running(engine, 2, text, tmp_path / "stops.py") as run:
        pids = [int((tmp_path / str(rank)).read_text()) for rank in range(2)]
        run.send_signal(signal.SIGTSTP)
        assert os.WIFSTOPPED(os.waitpid(run.pid, os.WUNTRACED)[1])
        # SIGCONT takes back a stop that has not reached its rank yet.
        wait_until(lambda: not any(is_pending(signal.SIGTSTP, pid) for pid in pids), "they hear it")
        run.send_signal(signal.SIGCONT)
        said, _, code = ended(run, tmp_path)
    assert (said, code) == (all_of("goes on", 2), 0)


WAITS = {
    "recv": "world.recv(source=other, tag=9)",
    "Recv": "world.Recv(bytearray(8), source=other, tag=9)",
    "Ssend": "world.Ssend(bytes(100_000), dest=other, tag=9)",
    "sendrecv": "world.sendrecv(bytes(100_000), dest=other, sendtag=8, source=other, recvtag=9)",
    "Wait": "world.Irecv(bytearray(8), source=other, tag=9).Wait()",
    "Waitall": "MPI.Request.Waitall([world.Irecv(bytearray(8), source=other, tag=9)])",
    "Waitany": "MPI.Request.Waitany([world.Irecv(bytearray(8), source=other, tag=9)])",
    "Waitsome": "MPI.Request.Waitsome([world.Irecv(bytearray(8), source=other, tag=9)])",
    "Barrier": "world.Barrier() if world.rank else time.sleep(1000)",
}


TRIES = 3


@pytest.mark.timeout(patient(120))
@pytest.mark.parametrize("call", WAITS)
def test_a_handler_ends_the_call_that_waits_by_what_it_raises(call: str, tmp_path: Path) -> None:
    """The exception comes where the program called."""
    text = f"""
        other = 1 - world.rank
        try:
            up()
            {WAITS[call]}
        except KeyboardInterrupt:
            say("ended")
        """
    # On a loaded machine one run in about twenty loses a rank's exception; the cause is not known.
    for _ in range(TRIES):
        grace = ("--grace", f"{patient(20):g}")
        with running("forked", 2, text, tmp_path / "waits.py", *grace) as run:
            time.sleep(0.5)
            run.send_signal(signal.SIGINT)
            said, _, code = ended(run, tmp_path)
        if said == all_of("ended", 2):
            break
    assert said == all_of("ended", 2)
    assert code == 130
