"""`shrimpmx top`: exact rates of a run whose clock the test moves, its end, and bad input."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.conditions import patient, wait_until
from support.live_run import POSITION, RUN, LiveRun, only_our_runs

from shrimpmx.cli import main, top
from shrimpmx.cluster.live import attach, runs
from shrimpmx.cluster.live.runs import command_of
from shrimpmx.errors import SegmentError
from shrimpmx.native.segment import RunIdentity
from shrimpmx.show.terminal import console

INTERVAL = ("--interval", "0.01")
Happens = Callable[[int], None]


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    only_our_runs(monkeypatch)
    monkeypatch.setattr(top, "FOLLOW_S", 0.0)  # this process lives on after its runs
    monkeypatch.setattr(runs, "is_simulated", lambda _run: False)  # though a test moves its clock


@pytest.fixture
def live() -> Iterator[LiveRun]:
    run = LiveRun()
    run.open_endpoint(core=1)
    yield run
    run.close()


@pytest.fixture
def running() -> Iterator[LiveRun]:
    """A run for another process, which reads its clock when it likes."""
    run = LiveRun(clock="monotonic")
    run.open_endpoint(core=1)
    yield run
    run.close()


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Happens) -> None:
    """Let `happens(number)` be what the run does in each interval, counted from 1."""
    sleep, calls = time.sleep, [0]

    def sleeps(seconds: float) -> None:
        calls[0] += 1
        happens(calls[0])
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleeps)


@pytest.fixture
def busy(live: LiveRun, monkeypatch: pytest.MonkeyPatch) -> LiveRun:
    """Each interval is two seconds of the run's clock, and the same happens in each."""

    def happens(number: int) -> None:
        live.pass_time(2)
        live.interrupt(0, 0, 100 * number)
        live.interrupt(1, 1, 7 * number)
        live.count("node0.nic", rx_packets=500 * number, rx_drop_ring_full=4 * number)
        live.count(
            "node0.irq0",
            recv_packets=1000 * number,
            handover_event=30 * number,
            recv_at_process=10 * number,
            drop_bad_session=2 * number,
        )
        live.count("rank0", recv_messages=640 * number)

    meanwhile(monkeypatch, happens)
    return live


def test_the_command_that_started_a_run_is_told_without_its_interpreter() -> None:
    words = [sys.executable, "-c", "input()", "/bin/shrimpmx", "run", "smoke/a b"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        run = RunIdentity("x", child.pid, 0)
        wait_until(lambda: command_of(run) == "shrimpmx run 'smoke/a b'", "the command is told", 10)
    assert command_of(run) == ""


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The documents of a file of lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def words_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line]


def test_one_table_of_exact_rates(busy: LiveRun, capsys: pytest.CaptureFixture[str]) -> None:
    before = busy.mappings()
    assert main(["top", "--once", *INTERVAL]) == 0
    lines = words_of(capsys.readouterr().out)
    assert lines[0][:2] == ["run", RUN]
    assert lines[1][:2] == ["command", command_of(busy.identity).split()[0]]
    assert " ".join(lines[4]) == "drops/s 3.0 rx_drop_ring_full 2.0, drop_bad_session 1.0"
    rows = {line[0]: line[1:] for line in lines[5:]}
    assert rows["node0.core0"] == ["0", "0", "-", "50", "500", "15", "25%", "0:50"]
    assert rows["node0.core1"] == ["0", "0", "-", "3.5", "0", "0", "-", "1:3.5"]
    assert rows["node0.rx0"] == ["0", "50", "0", "rank0@1"]
    assert rows["node0.rx1"] == ["0", "3.5", "1"]
    assert rows["process"][-2:] == ["received/s", "spins"]
    assert rows["rank0"][-2:] == ["320", "0%"]
    assert rows["nic"][-2:] == ["250", "0%"]
    assert list(rows)[-2:] == ["rank0", "nic"]
    assert busy.mappings() == before


def test_the_same_as_lines_of_json(
    busy: LiveRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "top.json"
    assert main(["top", RUN[:6], "--count", "3", "--json", str(path), *INTERVAL]) == 0
    assert capsys.readouterr().out.count("drops/s") == 3
    looks = lines_of(path)
    assert [look["run"] for look in looks] == [RUN] * 3
    assert sorted(look["at"] for look in looks) == [look["at"] for look in looks]
    for view in (look["view"] for look in looks):
        assert view["seconds"] == 2
        assert view["cores"][0]["interrupts"] == 50
        assert view["cores"][0]["at_process"] == 0.25
        assert view["queues"][1]["affinity"] == [1]
        assert view["drops"] == {"rx_drop_ring_full": 2, "drop_bad_session": 1}


def test_looking_changes_nothing(live: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda _: live.pass_time(1))
    before = bytes(live.node.segment.view())
    assert main(["top", "--once", *INTERVAL]) == 0
    assert bytes(live.node.segment.view()) == before


def test_a_view_that_was_closed_maps_nothing_and_says_so(live: LiveRun) -> None:
    before = live.mappings()
    with attach.AttachedRun(live.identity) as attached:
        assert live.mappings() > before
        assert attached.control.runners_count == 4
    assert live.mappings() == before
    attached.close()
    with pytest.raises(SegmentError, match=f"run {RUN} is not mapped any more"):
        attached.reading()


def test_a_run_that_ends_ends_the_view(
    live: LiveRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def happens(number: int) -> None:
        live.pass_time(1)
        if number == 3:
            live.end()

    before = live.mappings()
    meanwhile(monkeypatch, happens)
    assert main(["top", *INTERVAL]) == 0
    out = capsys.readouterr().out
    assert out.count("drops/s") == 2
    assert out.endswith(f"run {RUN} has ended\n")
    assert live.mappings() == before


def test_the_next_run_of_a_sweep_is_followed_unless_one_was_named(
    live: LiveRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    following: list[LiveRun] = []

    def happens(number: int) -> None:
        for each in (live, *following):
            each.pass_time(1)
        if number == 2:
            live.end()
            following.append(LiveRun(RUN + "_next"))
        if number == 4:
            following[0].end()

    meanwhile(monkeypatch, happens)
    assert main(["top", *INTERVAL]) == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines() if " old " in line] == [
        *(RUN, f"{RUN}_next"),
    ]
    assert out.endswith(f"run {RUN}_next has ended\n")
    following[0].close()


def test_a_run_that_ends_within_the_interval_is_shown_as_far_as_it_was_read(
    live: LiveRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def happens(number: int) -> None:
        live.pass_time(2)
        live.interrupt(0, 0, 100 * number)
        if number == 4:
            live.interrupt(0, 0, 10**9)
            live.end()

    monkeypatch.setattr(top, "LOOK_S", 0.01)
    meanwhile(monkeypatch, happens)
    assert main(["top", "--once", "--interval", "60"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("rates over 6.0 s")
    assert sum(line.startswith("run ") for line in lines) == 1
    [core] = [line.split() for line in lines if line.startswith("node0.core0")]
    assert core[4] == "50"


def runs_that_end_at_once(live: LiveRun, monkeypatch: pytest.MonkeyPatch) -> list[LiveRun]:
    """Let each run end before it is read twice, and another one follow it."""
    runs = [live]

    def happens(number: int) -> None:
        runs[-1].end()
        runs.append(LiveRun(f"{RUN}_{number}"))

    monkeypatch.setattr(top, "LOOK_S", 0.1)
    meanwhile(monkeypatch, happens)
    return runs


def test_one_table_is_not_waited_for_endlessly_while_runs_end_too_soon(
    live: LiveRun,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    runs = runs_that_end_at_once(live, monkeypatch)
    monkeypatch.setattr(top, "PATIENCE_S", 0.25)
    path = tmp_path / "top.json"
    advice = "runs end within the interval: use a shorter one, --interval 0.02\n"
    for asked in (("--once",), ("--count", "2")):
        assert refusal(capsys, *asked, "--json", str(path)).endswith(advice)
        assert path.read_text() == ""
    monkeypatch.setattr(top, "PATIENCE_S", 0.0)
    assert "too short to be watched" in refusal(capsys, "--once", *INTERVAL)
    for run in runs[1:]:
        run.close()


def test_each_line_is_there_at_once_also_if_ctrl_c_ends_the_view(
    live: LiveRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, seen = tmp_path / "top.json", []

    def happens(number: int) -> None:
        live.pass_time(1)
        seen.append(len(lines_of(path)))
        if number == 4:
            raise KeyboardInterrupt

    meanwhile(monkeypatch, happens)
    assert main(["top", "--json", str(path), *INTERVAL]) == 0
    assert seen == [0, 1, 2, 3]
    assert len(lines_of(path)) == 3


def test_lines_alone_on_the_standard_output(
    busy: LiveRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--count", "2", "--json", "-", *INTERVAL]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [look["run"] for look in lines] == [RUN] * 2


def test_a_full_disk_ends_it_with_one_sentence(
    busy: LiveRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "/dev/full cannot be written" in refusal(
        capsys, "--once", "--json", "/dev/full", *INTERVAL
    )


def test_what_ranks_are_waited_for_and_where_the_run_is(
    live: LiveRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meanwhile(monkeypatch, lambda _: live.pass_time(2))
    assert main(["top", "--once", *INTERVAL]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["sweep", *POSITION.split()] in map(str.split, lines)
    assert "waits    for rank0 to be ready" in lines


def test_a_terminal_is_filled_and_given_back(
    live: LiveRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(
        top, "console", lambda: console(file=screen, force_terminal=True, width=80, height=24)
    )
    meanwhile(monkeypatch, lambda _: live.pass_time(1))
    assert main(["top", "--count", "2", *INTERVAL]) == 0
    text = screen.getvalue()
    assert text.count("\x1b[?1049h") == text.count("\x1b[?1049l") == 1
    left = text.partition("\x1b[?1049l")[2]
    assert f"run {RUN}" in left
    assert "node0.core1" in left


def test_q_ends_the_view_and_gives_the_terminal_back(running: LiveRun) -> None:
    command = [sys.executable, "-m", "shrimpmx", "top", RUN, *INTERVAL]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, {**os.environ, "TERM": "xterm"})
    try:
        before = termios.tcgetattr(terminal)
        seen = b""

        def shown() -> bool:
            nonlocal seen
            if select.select([terminal], [], [], 0.01)[0]:
                with contextlib.suppress(OSError):  # the child has closed it
                    seen += os.read(terminal, 4096)
            return b"q quits" in seen

        wait_until(shown, "the view is on the screen", 50)
        os.write(terminal, b"q")
        wait_until(lambda: shown() and ended(pid), "the view ends", 30)
        assert termios.tcgetattr(terminal) == before
    finally:
        os.close(terminal)


def test_a_terminal_that_controls_another_session_shows_the_table(running: LiveRun) -> None:
    master, terminal = pty.openpty()
    try:
        process = subprocess.run(
            [sys.executable, "-m", "shrimpmx", "top", RUN, "--count", "1", *INTERVAL],
            stdin=terminal,
            stdout=terminal,
            stderr=subprocess.PIPE,
            start_new_session=True,
            timeout=patient(30),
            check=False,
        )
        assert (process.returncode, process.stderr) == (0, b"")
        assert RUN.encode() in os.read(master, 4096)
    finally:
        os.close(terminal)
        os.close(master)


def ended(pid: int) -> bool:
    """Whether a child has ended, as it should."""
    found, status = os.waitpid(pid, os.WNOHANG)
    assert status == 0
    return found == pid


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["top", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def test_bad_input_is_one_sentence(
    live: LiveRun, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert f"whose id begins with 'unknown' (live: {RUN})" in refusal(capsys, "unknown")
    for seconds in ("0", "nan", "x", "-1", "1e9"):
        assert "seconds from 0.01" in refusal(capsys, f"--interval={seconds}")
    for count in ("0", "-1", "1.5", "x"):
        assert "whole number from 1" in refusal(capsys, f"--count={count}")
    assert "not allowed with" in refusal(capsys, "--once", "--count", "2")
    assert "is a directory" in refusal(capsys, "--json", str(tmp_path))


def test_without_a_live_run_there_is_nothing_to_watch(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys)
    assert "no run of yours is live on this machine; start one first" in said
    assert "simulated workloads never are" in said


def test_a_run_that_never_gets_a_process_is_told_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach, "SETTLE_S", 0.0)
    run = LiveRun(begun=False)
    try:
        assert f"run {RUN} has no process yet" in refusal(capsys, "--once")
    finally:
        run.close()
