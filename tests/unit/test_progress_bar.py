"""Progress: what varies, what a run waits for, and how long, in one line or by lines."""

from __future__ import annotations

import os
import pty
import select
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.conditions import patient

from shrimpmx.experiment import progress_bar
from shrimpmx.experiment.progress_bar import LINE_S, WIDE, Bar, Lines, point_words, progress_for
from shrimpmx.experiment.scenario import RunPlan, Scenario, plan_runs


def test_progress_shows_what_varies_by_name_in_one_line() -> None:
    declared = Scenario(
        name="x",
        title="t",
        metrics=("half_round_trip",),
        parameters={"iterations": 3000, "rx_usecs": 20},
        sweep={"size_bytes": (0, 1024), "coalescing": ("timeout", "stream"), "mtu": (1500,)},
    )
    axes = declared.varying_axes
    plan = plan_runs(declared, declared.points(), 1)[0]
    words = point_words(plan, axes)
    assert words in {
        f"messages of {size}, coalescing {way}"
        for size in ("0 B", "1 KiB")
        for way in ("timeout", "stream")
    }
    for columns in (30, 50, 200):
        bar = Bar("smoke/pingpong", axes, columns)
        bar.begin(8, 3)
        bar.running(plan, "point 2 of 4, run 1 of 2")
        for _ in range(2):
            lines = bar.lines()
            assert len(lines) == 1
            assert len(lines[0]) <= columns
            assert "3/8" in lines[0]
            assert words[:8] in lines[0]
            bar.waits_for("rank0 to finish")
        bar.end()


def test_progress_says_what_a_run_waits_for_and_how_long() -> None:
    now_s = [100.0]
    plan = RunPlan(0, Scenario(name="x", title="t", metrics=("round_trip",)).points()[0], 0)
    bar = Bar("x", (), 200, clock=lambda: now_s[0])
    bar.begin(6, 0)
    bar.running(plan, "point 1 of 2, run 1 of 3")
    assert "run 1 of 3" in bar.lines()[0]
    now_s[0] += 12
    bar.waits_for("rank1 to finish")
    assert "run 1 of 3, 12 s, waits for rank1 to finish" in bar.lines()[0]
    bar.again("time stolen by the hypervisor")
    now_s[0] += 3
    bar.waits_for("rank1 to finish")
    assert "again (time stolen by the hypervisor), 3 s, waits" in bar.lines()[0]
    bar.end()
    assert bar.position == "point 1 of 2, run 1 of 3"


def test_a_file_gets_a_line_each_minute(capsys: pytest.CaptureFixture[str]) -> None:
    now_s = [100.0]
    plan = RunPlan(0, Scenario(name="x", title="t", metrics=("round_trip",)).points()[0], 0)
    assert isinstance(progress_for("x", ()), Lines)
    lines = Lines("x", before=4, clock=lambda: now_s[0])
    lines.begin(9, 1)
    for _ in range(2):
        lines.running(plan, "point 1 of 2, run 1 of 3")
        now_s[0] += LINE_S / 3
        lines.waits_for("rank1 to finish")
        lines.finished(plan)
    assert capsys.readouterr().err == ""
    lines.running(plan, "point 1 of 2, run 3 of 3")
    for _ in range(3):
        now_s[0] += LINE_S / 3
        lines.waits_for("rank1 to finish")
    told = "run 3 of 3, waits for rank1 to finish\n"
    assert capsys.readouterr().err == f"x: 7 of 9 runs done, {told}"
    later = Lines("y", whole=9, begun_s=now_s[0] - 59, clock=lambda: now_s[0])  # of several
    later.finished(plan)
    now_s[0] += 1
    later.finished(plan)
    assert capsys.readouterr().err == "y: 2 of 9 runs done\n"
    explored = Lines("explore", whole=None, clock=lambda: now_s[0])
    explored.begin(600, 0)
    now_s[0] += LINE_S
    explored.finished(plan)
    assert capsys.readouterr().err == "explore: 1 run done\n"


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Standard error is a terminal; the descriptors of its two ends, that of its user first."""
    monkeypatch.setenv("TERM", "xterm")
    user, program = pty.openpty()
    try:
        with os.fdopen(program, "w", closefd=False) as file:
            monkeypatch.setattr(sys, "stderr", file)
            yield user, program
    finally:
        os.close(user)
        os.close(program)


def all_of(descriptor: int, last: bytes) -> bytes:
    """What comes from a terminal, until these words have come, or no more comes."""
    found, until_s = b"", time.monotonic() + patient(50)
    while last not in found and time.monotonic() < until_s:
        if select.select([descriptor], [], [], 0.1)[0]:
            found += os.read(descriptor, 65536)
    return found


def test_a_stopped_terminal_keeps_no_run_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-S, or a reader that takes nothing: what was drawn is there once it goes on."""
    with terminal(monkeypatch) as (user, program):
        bar = Bar("smoke/pingpong", width=WIDE)
        termios.tcflow(program, termios.TCOOFF)
        bar.begin(8, 3)
        for second in range(20):
            bar.waits_for(f"rank{second} to finish")
        termios.tcflow(program, termios.TCOON)
        bar.end()
        taken = all_of(user, b"rank19 to finish")
    assert b"rank0 to finish" in taken
    assert b"rank19 to finish" in taken


def test_a_terminal_that_stays_stopped_has_its_cursor_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_bar, "PATIENCE_S", 0.1)
    with terminal(monkeypatch) as (user, program):
        bar = Bar("smoke/pingpong", width=WIDE)
        termios.tcflow(program, termios.TCOOFF)
        bar.begin(8, 3)
        bar.end()
        termios.tcflow(program, termios.TCOON)
        print("result: there", file=sys.stderr)
        assert all_of(user, b"there").rstrip() == b"\x1b[2K\x1b[G\x1b[?25hresult: there"


def test_what_a_process_of_a_run_prints_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as (user, program):
        bar = Bar("smoke/pingpong", width=WIDE)
        bar.begin(8, 3)
        all_of(user, b"3/8")
        termios.tcflow(program, termios.TCOOFF)
        bar.waits_for("rank0 to finish")
        process = os.fork()
        if process == 0:
            print("rank0 says so", file=sys.stderr)
            os._exit(0)
        time.sleep(0.1)
        termios.tcflow(program, termios.TCOON)
        taken = all_of(user, b"rank0 says so")
        os.waitpid(process, 0)
        bar.end()
    assert b"rank0 says so" in taken


def test_a_bar_on_a_terminal_that_was_closed_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    user, program = pty.openpty()
    with os.fdopen(program, "w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        bar = Bar("smoke/pingpong", width=WIDE)
        bar.begin(8, 3)
        os.close(user)
        bar.waits_for("rank0 to finish")
        monkeypatch.setattr(time, "sleep", lambda _s: pytest.fail("it waits for the terminal"))
        bar.end()
