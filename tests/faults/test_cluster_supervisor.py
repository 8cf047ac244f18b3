"""The supervisor itself is killed or interrupted; its leavings are found by identity."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from support.conditions import patient, wait_until
from support.dead_runs import dead_here

from shrimpmx.cluster.engine.ending import FirstInterrupt, interrupts_held
from shrimpmx.cluster.engine.leftovers import find_leftovers, janitors_of, remove_leftovers
from shrimpmx.cluster.rank.channel import unlink_queue
from shrimpmx.native.segment import RunIdentity, Segment, list_segments

REPOSITORY = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("supervised.py")


@contextmanager
def supervisor(strategy: str, scratch: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A supervisor in a process group of its own, its cluster at work."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), strategy, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(scratch)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert process.stdout.readline() == "running\n", process.stderr.read()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def segments_of(pid: int) -> list[str]:
    return [name for name, identity, _ in list_segments() if identity.pid == pid]


def members(session: int) -> list[int]:
    """Living processes of the supervisor's session and the janitor, by whose child they were."""
    found = []
    for name in os.listdir("/proc"):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except (OSError, NotADirectoryError):
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(name))
    return found


@pytest.mark.nightly("each moment", but=1)
@pytest.mark.parametrize("strategy", ["spin", "block", "notify"])
def test_a_killed_supervisor_leaves_nothing(strategy: str, tmp_path: Path) -> None:
    with supervisor(strategy, tmp_path) as process:
        # The control segment, the plan, and two for each of the two nodes.
        assert len(segments_of(process.pid)) == 6
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: not segments_of(process.pid), "its segments are gone")
        wait_until(lambda: not members(process.pid), "its processes are gone")
        wait_until(lambda: not list(tmp_path.iterdir()), "its files are gone")


@pytest.mark.nightly("each end")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_without_supervisor_and_janitor_a_clean_up_removes_the_rest(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with supervisor("block", tmp_path) as process:
        run = next(run for _, run, _ in list_segments() if run.pid == process.pid)
        (janitor,) = janitors_of(run)
        os.kill(janitor, number)
        assert segments_of(process.pid)
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: not members(process.pid), "its processes are gone")
        # Any run on this machine may have begun that meanwhile.
        remove_leftovers(find_leftovers())
        assert not segments_of(process.pid)
        wait_until(lambda: not list(tmp_path.iterdir()), "its files are gone")
        wait_until(lambda: not janitors_of(run), "its janitor is gone")


@pytest.mark.nightly("each other end")
def test_a_killed_supervisor_with_stopped_agents_leaves_nothing(tmp_path: Path) -> None:
    with supervisor("block", tmp_path) as process:
        for pid in members(process.pid):
            if pid != process.pid:
                os.kill(pid, signal.SIGSTOP)
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: not segments_of(process.pid), "its segments are gone")
        wait_until(lambda: not members(process.pid), "its processes are gone")
        wait_until(lambda: not list(tmp_path.iterdir()), "its files are gone")


@pytest.mark.nightly("each kind of run", but=1)
@pytest.mark.parametrize("whole_group", [False, True])
def test_ctrl_c_ends_the_run_cleanly(whole_group: bool, tmp_path: Path) -> None:
    with supervisor("spin-block", tmp_path) as process:
        if whole_group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        assert process.wait(patient(40)) == 3
        assert process.stderr is not None
        said = process.stderr.read()
        assert said == "interrupted by Ctrl-C\n"
        assert segments_of(process.pid) == []
        assert members(process.pid) == []
        assert list(tmp_path.iterdir()) == []


SAID = {
    signal.SIGINT: "interrupted by Ctrl-C\n",
    signal.SIGTERM: "interrupted by SIGTERM\n",
    signal.SIGHUP: "interrupted by SIGHUP: its terminal was closed\n",
}


@pytest.mark.nightly("each signal and pause", but=1)
@pytest.mark.parametrize("gap_s", [0.0, 0.001, 0.003, 0.03, 0.1])
@pytest.mark.parametrize("number", list(SAID))
def test_a_signal_to_the_group_twice_ends_the_run_once(
    number: signal.Signals, gap_s: float, tmp_path: Path
) -> None:
    with supervisor("block", tmp_path, "listening") as process:
        os.killpg(process.pid, number)
        time.sleep(gap_s)
        # No process may be left to hear the second one: that is no failure.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        assert process.wait(patient(40)) == 3
        assert process.stderr is not None
        assert process.stderr.read() == SAID[number]
        assert segments_of(process.pid) == []
        assert members(process.pid) == []
        assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly("each other end")
def test_a_closed_terminal_ends_the_run(tmp_path: Path) -> None:
    master, terminal = os.openpty()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "shrimpmx", "run", "smoke/pingpong"),
            *("--set", "wait=block", "--set", "repeats=1000", "--output", str(tmp_path / "r")),
        ],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        cwd=REPOSITORY,
    )
    try:
        os.close(terminal)
        wait_until(lambda: bool(list(tmp_path.glob("r/points/*.json"))), "a point is kept", 30.0)
        os.close(master)
        assert process.wait(patient(40)) == 3
        assert segments_of(process.pid) == []
        assert members(process.pid) == []
        assert json.loads((tmp_path / "r" / "run.json").read_text())["points"]
    finally:
        process.kill()
        process.wait()


def test_an_interrupt_that_its_owner_takes_ends_nothing() -> None:
    taken: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _frame: taken.append(number))
    try:
        with FirstInterrupt():
            for _ in range(2):
                signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert taken == [signal.SIGHUP] * 2


class _Hearing:
    """Interrupts this process at its end."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def _in_a_finalizer() -> None:
    _Hearing()


def _in_a_weak_references_callback() -> None:
    watched = threading.Event()
    _watching = weakref.ref(watched, lambda _: signal.raise_signal(signal.SIGINT))
    del watched


def _in_a_collection() -> None:
    def interrupt(phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            signal.raise_signal(signal.SIGINT)

    gc.callbacks.append(interrupt)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(interrupt)


@pytest.mark.parametrize(
    "place", [_in_a_finalizer, _in_a_weak_references_callback, _in_a_collection]
)
@pytest.mark.parametrize("nested", [1, 3])
def test_an_interrupt_dropped_by_python_comes_again(
    place: Callable[[], None], nested: int, capfd: pytest.CaptureFixture[str]
) -> None:
    def wait() -> None:
        with ExitStack() as stack:
            for _ in range(nested):
                stack.enter_context(FirstInterrupt())
            place()
            time.sleep(patient(10))

    with pytest.raises(KeyboardInterrupt, match="Ctrl-C"):
        wait()
    assert capfd.readouterr().err == ""


def test_an_interrupt_that_is_held_comes_afterwards_even_through_another_thread() -> None:
    done: list[str] = []

    def interrupt() -> None:
        # A thread inherits the mask; this one stands for those that were there before.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def hold() -> None:
        with interrupts_held():
            other = threading.Thread(target=interrupt)
            other.start()
            other.join()
            done.append("held")
        done.append("never")

    with FirstInterrupt(), pytest.raises(KeyboardInterrupt, match="Ctrl-C"):
        hold()
    assert done == ["held"]


def test_an_interrupt_that_was_caught_does_not_come_again_at_the_programs_end(
    tmp_path: Path,
) -> None:
    text = """
        import signal
        from shrimpmx.cluster.engine.ending import FirstInterrupt
        try:
            with FirstInterrupt():
                exec("signal.raise_signal(signal.SIGINT)")
        except KeyboardInterrupt:
            raise SystemExit(7)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "program"]
    path = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, timeout=patient(30))
    assert (done.returncode, done.stderr) == (7, b"")


def test_leftovers_of_a_dead_run_are_found_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    dead, alive = dead_here(monkeypatch), RunIdentity.of_this_process()
    for identity in (dead, alive):
        Segment.create(identity, "node0", 4096, 2).close()
    try:
        found = find_leftovers()
        assert dead.segment_name("node0") in found.segments
        assert re.search(r"\d segment", found.describe())
        remove_leftovers(found)
        assert segments_of(os.getpid()) == [alive.segment_name("node0")]
    finally:
        for name in segments_of(os.getpid()):
            Segment.attach(name, 2).unlink()


def test_removing_what_is_gone_is_harmless() -> None:
    assert not unlink_queue("shrimpmx-none-1-1-control-queue")
    found = find_leftovers()
    found.segments.append("shrimpmx-none-1-1-node0")
    found.queues.append("shrimpmx-none-1-1-control-queue")
    remove_leftovers(found)
