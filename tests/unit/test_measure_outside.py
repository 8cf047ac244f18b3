"""What disturbs a run from outside: seen by figures before and after it, and told in one line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shrimpmx.results.environment import busy_ns, stolen_ns
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.other_programs import Program, Used, other_programs, used_meanwhile
from shrimpmx.results.outside import (
    LOAD,
    OTHER_RUNS,
    PAUSE,
    STOLEN,
    Figures,
    Outside,
    disturbance,
    disturbance_words,
    disturbances,
)

MS = 1_000_000
OUTCOME = Outcome(np.ones(1), {}, placement={"processes": [{"cpu": 0}, {"cpu": 2}]})


class Machine:
    """A machine whose figures a test sets, and which a run of a second changes."""

    def __init__(self) -> None:
        self.beside: list[int] = []
        self.stolen = {0: 500 * MS, 1: 0, 2: 0}
        self.programs = {Program(7, 100): Used(900 * MS, 0), Program(8, 100): Used(0, 1)}
        self.now_s = 10.0
        figures = Figures(
            lambda: self.beside, lambda: dict(self.stolen), lambda: dict(self.programs)
        )
        self.outside = Outside(figures, lambda: self.now_s)

    def run(
        self, stolen: Mapping[int, int] | None = None, outcome: Outcome = OUTCOME, took_s: float = 1
    ) -> set[str]:
        self.outside.begin()
        self.now_s += took_s
        for cpu, ns in (stolen or {}).items():
            self.stolen[cpu] += ns
        return set(self.outside.end(outcome))


def test_a_quiet_machine_disturbs_no_run() -> None:
    assert Machine().run() == set()


def test_a_run_beside_others_at_its_begin_or_end_is_disturbed() -> None:
    machine = Machine()
    machine.beside = [4711]
    assert machine.run() == {OTHER_RUNS}
    machine.outside.begin()
    machine.beside = []
    assert set(machine.outside.end(OUTCOME)) == {OTHER_RUNS}
    assert machine.run() == set()
    machine.outside.begin()
    machine.beside = [4711]
    assert set(machine.outside.end(OUTCOME)) == {OTHER_RUNS}


@pytest.mark.parametrize(
    ("stolen", "took_s", "disturbed"),
    [
        ({0: 20 * MS}, 1, True),
        ({2: 20 * MS}, 2, True),
        ({0: 20 * MS}, 3, False),  # a smaller share
        ({0: 10 * MS}, 0.1, False),  # a tick may be of what was before
        ({1: 500 * MS}, 1, False),  # no process of the run was there
        ({0: 10 * MS, 2: 10 * MS}, 1, False),
    ],
)
def test_stolen_time_counts_where_the_run_was(
    stolen: Mapping[int, int], took_s: float, disturbed: bool
) -> None:
    assert Machine().run(stolen, took_s=took_s) == ({STOLEN} if disturbed else set())


def test_what_is_stolen_from_short_runs_adds_up_over_some_seconds() -> None:
    machine = Machine()
    ticks = [10 * MS if number % 2 else 0 for number in range(6)]
    found = [machine.run({0: ns}, took_s=0.2) for ns in ticks]
    assert found == [set(), set(), set(), {STOLEN}, set(), set()]
    # Also behind many quiet ones.
    assert [machine.run(took_s=0.2) for _ in range(17)] == [set()] * 17
    assert [machine.run({0: 10 * MS}, took_s=0.2) for _ in range(2)] == [set(), {STOLEN}]
    # The same over longer runs is too little.
    assert [machine.run({0: ns}, took_s=3) for ns in ticks] == [set()] * 6


def test_what_disturbed_a_run_does_not_disturb_the_next_one() -> None:
    machine = Machine()
    assert machine.run({0: 200 * MS}, took_s=0.2) == {STOLEN}
    assert machine.run(took_s=0.2) == set()
    machine.stolen[0] += 200 * MS  # between runs
    assert machine.run(took_s=0.2) == set()


@pytest.mark.parametrize(
    ("used", "took_s", "disturbed"),
    [
        ({7: Used(950 * MS, 0)}, 1, True),
        ({7: Used(950 * MS, 0)}, 2, False),  # a smaller share
        ({7: Used(910 * MS, 0)}, 0.1, False),  # a tick may be of what was before
        ({7: Used(990 * MS, 1)}, 1, False),  # no process of the run was there
        ({7: Used(930 * MS, 0), 8: Used(30 * MS, 0)}, 1, True),
        ({9: Used(50 * MS, 2)}, 1, True),  # it began meanwhile
    ],
)
def test_other_programs_count_where_the_run_was(
    used: Mapping[int, Used], took_s: float, disturbed: bool
) -> None:
    machine = Machine()
    machine.outside.begin()
    machine.now_s += took_s
    machine.programs |= {Program(pid, 100): time for pid, time in used.items()}
    assert machine.outside.end(OUTCOME) == ({LOAD} if disturbed else set())
    assert machine.run() == set()


def test_of_a_run_without_places_every_cpu_counts() -> None:
    assert Machine().run({1: 20 * MS}, replace(OUTCOME, placement={})) == {STOLEN}


def test_a_pause_is_told_by_the_run() -> None:
    assert Machine().run(outcome=replace(OUTCOME, pauses=2)) == {PAUSE}


def test_what_lasts_is_no_reason_to_try_again_until_it_was_away() -> None:
    outside = Machine().outside
    assert not outside.may_pass(set())
    assert outside.may_pass({STOLEN})
    outside.kept([{STOLEN}, {STOLEN, OTHER_RUNS}, {STOLEN, PAUSE}])
    assert not outside.may_pass({STOLEN})
    assert outside.may_pass({STOLEN, PAUSE})
    outside.kept([{STOLEN}])
    assert not outside.may_pass({STOLEN})
    outside.kept([{STOLEN}, set()])
    assert outside.may_pass({STOLEN})


def test_steal_is_read_from_the_kernels_table(tmp_path: Path) -> None:
    assert stolen_ns(tmp_path) == {}
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text(
        "cpu  1 1 1 1 1 1 1 30 0 0\ncpu0 1 1 1 1 1 1 1 10 0 0\ncpu12 1 1 1 1 1 1 1 20 0 0\n"
        "intr 5 6\nctxt 7\ncpufreq 1 1 1 1 1 1 1 1 1\n"
    )
    found = stolen_ns(tmp_path)
    assert found.keys() == {0, 12}
    assert found[12] == 2 * found[0] > 0
    assert busy_ns(tmp_path)[12] == 25 * found[0] // 10
    assert stolen_ns().keys() >= {0}


def stat_of(proc: Path, pid: int, parent: int, ticks: int, began: int, cpu: int) -> None:
    """A process as proc(5) tells it, by a name that could be taken for more of its fields."""
    fields = [str(number) for number in range(50)]
    fields[0], fields[1], fields[11], fields[12] = "S", str(parent), str(ticks), "2"
    fields[19], fields[36] = str(began), str(cpu)
    (proc / str(pid)).mkdir(parents=True, exist_ok=True)
    (proc / str(pid) / "stat").write_bytes(
        f"{pid} (a ) R 1 \n".encode() + b"\xe4) " + " ".join(fields).encode() + b"\n"
    )


def test_other_programs_are_all_but_ones_own(tmp_path: Path) -> None:
    assert other_programs(tmp_path) == {}
    proc, own = tmp_path / "proc", os.getpid()
    stat_of(proc, 1, 0, 3, 0, 0)
    stat_of(proc, own, 1, 500, 40, 0)
    stat_of(proc, own + 1, own, 500, 50, 1)
    stat_of(proc, own + 2, own + 1, 500, 60, 1)
    stat_of(proc, own + 3, 1, 8, 70, 1)
    (proc / "4711").mkdir()  # has just ended
    (proc / "self").mkdir()
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    before = other_programs(tmp_path)
    assert before == {
        Program(1, 0): Used(5 * tick_ns, 0),
        Program(own + 3, 70): Used(10 * tick_ns, 1),
    }
    stat_of(proc, 1, 0, 4, 0, 1)
    stat_of(proc, own + 3, 1, 9, 90, 0)  # another one of the same number
    meanwhile = used_meanwhile(before, other_programs(tmp_path))
    assert meanwhile == {1: tick_ns, 0: 11 * tick_ns}


def test_children_of_this_process_are_no_other_programs() -> None:
    def seen() -> set[int]:
        return {program.pid for program in other_programs()}

    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert child.pid not in seen()
            assert os.getpid() not in seen()
            assert os.getppid() in seen() or not seen()  # or /proc hides it
        finally:
            child.kill()


def test_attempts_and_points_add_up_and_are_said_in_a_line() -> None:
    quiet, kept = disturbance([set()]), disturbance([{STOLEN}, {STOLEN, PAUSE}])
    passed = disturbance([{PAUSE}, {OTHER_RUNS}, set()])
    total = disturbances([quiet, kept, passed])
    assert total == {
        "disturbed": 1,
        "retaken": 3,
        "disturbances": {STOLEN: 2, PAUSE: 2, OTHER_RUNS: 1},
    }
    points = [
        {**disturbances([quiet, kept]), "states": ["near"] * 2},
        {**passed, "states": ["any"]},
    ]
    line = disturbance_words(points)
    assert f"{STOLEN} 2" in line
    assert "1 of 3" in line
    assert "3 were taken again" in line
    assert disturbance_words([{**disturbances([quiet]), "states": ["near"]}]) == ""
    # A result of a version that kept no causes.
    assert "2 of 4" in disturbance_words([{"disturbed": 2, "states": ["near"] * 4}])
