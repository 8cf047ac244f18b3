"""`shrimpmx mpirun`: the signals that it gets reach the programs of its ranks, once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from support.conditions import patient, wait_until
from support.listening import all_of, ended, engines, running

pytest.importorskip("mpi4py")

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


@pytest.mark.nightly("each signal and engine", but=1)
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


@pytest.mark.nightly("each signal and engine", but=1)
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


@pytest.mark.nightly("each signal and engine", but=1)
@engines
@pytest.mark.parametrize("how", ["limit", "again"])
def test_ranks_that_do_not_end_are_ended(how: str, engine: str, tmp_path: Path) -> None:
    grace = "0.5" if how == "limit" else "1000"
    with running(engine, 2, DEAF, tmp_path / "deaf.py", "--grace", grace) as run:
        run.send_signal(signal.SIGINT)
        if how == "again":  # not the same one
            errors = tmp_path / "errors"
            wait_until(lambda: "another Ctrl-C ends" in errors.read_text(), "it has been heard")
            run.send_signal(signal.SIGINT)
        said, err, code = ended(run, tmp_path)
    assert (said, code) == ([], 130)
    assert err.splitlines()[-1] == "shrimpmx: interrupted by Ctrl-C"
    assert ("did not end within 0.5 s of Ctrl-C" in err) == (how == "limit")


@pytest.mark.nightly("seconds of grace")
def test_a_rank_that_ends_first_ends_no_other_that_a_signal_has_told_to(tmp_path: Path) -> None:
    """Also if that waits for it for longer than ranks otherwise do for one that has left."""
    text = """
        signal.signal(signal.SIGTERM, hear)
        up()
        while not heard:
            time.sleep(0.02)
        if world.rank == 0:
            signal.setitimer(signal.ITIMER_REAL, 6)
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                world.recv(source=1)
            except KeyboardInterrupt:
                say("saved")
        """
    with running("forked", 2, text, tmp_path / "late.py", "--grace", f"{patient(20):g}") as run:
        run.send_signal(signal.SIGTERM)
        said, _, code = ended(run, tmp_path)
    assert (said, code) == (["saved 0\n"], 128 + signal.SIGTERM)


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
