"""What disturbs a run from outside: seen by figures before and after it, and told in one line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shrimpmx.results.disturbance import (
    LOAD,
    OTHER_RUNS,
    PAUSE,
    STOLEN,
    TICK_NS,
    Figures,
    Outside,
    Program,
    Used,
    disturbance,
    disturbance_words,
    disturbances,
    other_programs,
    used_meanwhile,
)
from shrimpmx.results.environment import busy_ns, stolen_ns
from shrimpmx.results.metrics import Outcome

MS = 1_000_000
OUTCOME = Outcome(np.ones(1), {}, placement={"processes": [{"cpu": 0}, {"cpu": 2}]})


def program(cpu_ns: int, cpu: int, **more: Any) -> Program:
    """A process of one thread, unless it has `threads`."""
    used = Used(cpu_ns, cpu)
    made = {"began": 100, "parent": 1, "used": used, "waited_ns": 0, "threads": {0: used}}
    return Program(**{**made, **more})


class Machine:
    """A machine whose figures a test sets, and which a run of a second changes."""

    def __init__(self) -> None:
        self.beside: list[int] = []
        self.stolen = {0: 500 * MS, 1: 0, 2: 0}
        self.programs = {7: program(900 * MS, 0), 8: program(0, 1)}
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
        ({7: program(950 * MS, 0)}, 1, True),
        ({7: program(950 * MS, 0)}, 2, False),  # a smaller share
        ({7: program(940 * MS, 0)}, 0.1, False),  # ticks may be of what was before
        ({7: program(990 * MS, 1)}, 1, False),  # no process of the run was there
        ({7: program(930 * MS, 0), 8: program(30 * MS, 0)}, 1, True),
        ({9: program(50 * MS, 2)}, 1, True),  # it began meanwhile
    ],
)
def test_other_programs_count_where_the_run_was(
    used: Mapping[int, Program], took_s: float, disturbed: bool
) -> None:
    machine = Machine()
    machine.outside.begin()
    machine.now_s += took_s
    machine.programs |= used
    assert machine.outside.end(OUTCOME) == ({LOAD} if disturbed else set())
    assert machine.run() == set()


def test_threads_count_where_they_ran_and_those_that_ended_where_their_process_is() -> None:
    before = {5: program(9 * MS, 0, threads={5: Used(2 * MS, 0), 6: Used(4 * MS, 1)})}
    after = {5: program(99 * MS, 0, threads={5: Used(3 * MS, 0), 7: Used(60 * MS, 2)})}
    # 6 has ended, with 29 ms more.
    assert used_meanwhile(before, after) == {0: 30 * MS, 2: 60 * MS}
    again = {5: program(8 * MS, 3, began=101)}  # another one of the same number
    assert used_meanwhile(before, again) == {3: 8 * MS}


def test_commands_that_have_ended_count_where_their_parent_is() -> None:
    shell = program(MS, 1, waited_ns=500 * MS)
    before = {5: shell, 6: program(300 * MS, 0, parent=5, waited_ns=30 * MS)}
    # 6 has had 7 ms more; others came and went in 40.
    after = {5: program(MS, 1, waited_ns=877 * MS)}
    assert used_meanwhile(before, after) == {1: 47 * MS}
    # A parent that waits for none.
    assert used_meanwhile(before, {5: shell}) == {1: 0}


def test_one_that_waits_to_be_waited_for_counts_with_its_parent() -> None:
    assert used_meanwhile({}, {5: program(70 * MS, 0, ended=True)}) == {}
    zombie = program(70 * MS, 0, ended=True, parent=4)
    before = {4: program(0, 1), 5: zombie}
    assert used_meanwhile(before, {4: program(0, 1, waited_ns=70 * MS)}) == {1: 0}


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


def stat_of(directory: Path, parent: int, ticks: int, cpu: int, **more: Any) -> None:
    """What proc(5) tells of a process, by a name that could be taken for more of its fields."""
    fields = [str(number) for number in range(50)]
    values = {0: "S", 1: parent, 11: ticks, 12: 2, 13: 30, 14: 1, 17: 1, 19: 40, 36: cpu}
    for place, value in (values | {int(place[1:]): each for place, each in more.items()}).items():
        fields[place] = str(value)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "stat").write_bytes(b"7 (a ) R 1 \n\xe4) " + " ".join(fields).encode() + b"\n")


def test_other_programs_are_all_but_this_one_and_its_descendants(tmp_path: Path) -> None:
    assert other_programs(tmp_path) == {}
    proc = tmp_path / "proc"
    stat_of(proc / "1", 0, 3, 0)
    stat_of(proc / "200", 1, 500, 0)
    stat_of(proc / "201", 200, 500, 1)
    stat_of(proc / "202", 201, 500, 1)
    stat_of(proc / "203", 1, 8, 1, f17=2, f19=70)
    stat_of(proc / "203/task/203", 0, 1, 1)
    stat_of(proc / "203/task/204", 0, 4, 0)
    stat_of(proc / "205", 206, 0, 0, f0="Z")
    stat_of(proc / "206", 205, 0, 0)  # read at another moment: its number has come round
    assert other_programs(tmp_path) == {}  # it does not know which one this is
    (proc / "self").symlink_to("200")
    (proc / "207").mkdir()  # has just ended
    (proc / "208").mkdir()
    (proc / "208/stat").write_text("208 (odd) S 1")
    found = other_programs(tmp_path)
    assert found.keys() == {1, 203, 205, 206}
    used = Used(5 * TICK_NS, 0)
    assert found[1] == Program(40, 0, used, 31 * TICK_NS, {1: used})
    assert found[203].used == Used(10 * TICK_NS, 1)
    assert found[203].threads == {203: Used(3 * TICK_NS, 1), 204: Used(6 * TICK_NS, 0)}
    assert found[205].ended


def test_children_of_this_process_are_no_other_programs() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            seen = other_programs()
            assert not {child.pid, os.getpid()} & seen.keys()
            # It has no parent in a container of its own, and /proc may hide all.
            assert os.getppid() in {0, *seen} or not seen
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
    assert "3 repeated" in line
    assert disturbance_words([{**disturbances([quiet]), "states": ["near"]}]) == ""
    # A result of a version that kept no causes.
    assert "2 of 4" in disturbance_words([{"disturbed": 2, "states": ["near"] * 4}])
