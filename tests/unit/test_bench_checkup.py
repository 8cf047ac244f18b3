"""What `shrimpmx doctor` finds of things that are optional, and how it is printed."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path

import pytest
from support.users import as_another_user, needs_two_users

from shrimpmx.bench import checkup
from shrimpmx.bench.checkup import (
    CHECKS,
    clean_up,
    context_switches,
    others,
    realtime_priority,
    valgrind,
)
from shrimpmx.cli import main
from shrimpmx.cluster.engine.switches import FIRST_NAMESPACE
from shrimpmx.experiment import engines
from shrimpmx.native.perf import SwitchRing, why_no_switches


def test_valgrind_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert valgrind in CHECKS
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert valgrind(Path("/")).as_dict()["found"] == "/usr/bin/valgrind"
    assert valgrind(Path("/")).state == "good"
    monkeypatch.setattr("shutil.which", lambda name: None)
    absent = valgrind(Path("/"))
    assert absent.state == "missing"
    assert "shrimpmx caches" in absent.follows
    assert "apt install valgrind" in absent.enable


def test_programs_that_proc_hides_are_told(tmp_path: Path) -> None:
    assert others(tmp_path).state == "limited"
    (tmp_path / "proc/1").mkdir(parents=True)
    assert others(tmp_path).state == "limited"  # hidepid=1
    (tmp_path / "proc/1/stat").write_text("1 (init) S 0")
    namespace = tmp_path / "proc/self/ns/pid"
    namespace.parent.mkdir(parents=True)
    namespace.symlink_to("pid:[4711]")
    assert "outside of this container" in others(tmp_path).found
    namespace.unlink()
    namespace.symlink_to(FIRST_NAMESPACE)
    assert others(tmp_path).state == "good"


@pytest.mark.parametrize("columns", [None, 60])
def test_output_to_a_file_has_no_trailing_blanks_and_fits(
    columns: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    for command in (["doctor"], ["list", "--strategies"]):
        assert main(command) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if line != line.rstrip()] == []
        assert max(map(len, lines)) <= (columns or 80)


@pytest.mark.parametrize(
    ("budget", "state"),
    [
        ("950000", "good"),
        ("1000000", "limited"),
        ("1900000 2000000", "good"),
        ("950000 2000000", "limited"),
        ("-1", "limited"),
        ("500000", "limited"),
    ],
)
def test_real_time_priority_that_the_kernel_does_not_bound_is_worth_less(
    budget: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shrimpmx.native.cores.realtime_permitted", lambda: (True, "permitted"))
    assert realtime_priority(tmp_path).state == "limited"  # the kernel does not tell
    setting = tmp_path / "proc/sys/kernel/sched_rt_runtime_us"
    setting.parent.mkdir(parents=True)
    runtime_us, *period_us = budget.split()
    setting.write_text(runtime_us + "\n")
    for each in period_us:
        setting.with_name("sched_rt_period_us").write_text(each + "\n")
    found = realtime_priority(tmp_path)
    assert found.state == state
    assert bool(found.follows and found.enable) == (state == "limited")


def test_context_switches_are_there_or_a_sentence_says_what_would_allow_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert context_switches in CHECKS
    monkeypatch.setattr(checkup, "SwitchRing", lambda cpu: SwitchRing(cpu, bytearray(8192)))
    assert context_switches(Path("/")).state == "good"

    def refused(_cpu: int) -> SwitchRing:
        raise PermissionError(errno.EACCES, why_no_switches(errno.EACCES))

    monkeypatch.setattr(checkup, "SwitchRing", refused)
    found = context_switches(Path("/"))
    assert found.state == "missing"
    assert "perf_event_paranoid=0" in found.enable


PR_SET_DUMPABLE = 4


@needs_two_users
def test_a_python_that_the_kernel_hides_is_told_of() -> None:
    def work() -> None:
        assert clean_up(Path("/")).state == "limited"  # root's program, now another user's
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        assert clean_up(Path("/")).state == "good"
        # As after the exec of a program with capabilities.
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        found = clean_up(Path("/"))
        assert found.state == "limited"
        assert found.follows
        assert found.enable

    assert clean_up(Path("/")).state == "good"
    as_another_user(work)


def test_a_run_tells_of_it_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "processes_visible", lambda: (False, "hidden by the kernel"))
    engines._tell_what_cannot_be_seen.cache_clear()
    for _ in range(2):
        engines.chosen_engine()
    (line,) = capsys.readouterr().err.splitlines()
    assert "hidden by the kernel" in line
    engines._tell_what_cannot_be_seen.cache_clear()
