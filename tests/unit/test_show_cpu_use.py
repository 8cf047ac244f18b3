"""Which process had the CPU in a stage of a message: switches made by hand."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from shrimpmx.cluster.engine.switches import Switches, ahead_of_monotonic_ns, stranger
from shrimpmx.native.perf import IDLE, UNKNOWN
from shrimpmx.native.trace import TraceRecord
from shrimpmx.show.cpu_use import CpuUse
from shrimpmx.show.kept_trace import keep_trace, load_trace
from shrimpmx.show.slow_messages import slowest_text, untold_by
from shrimpmx.show.timeline import Seat, Timeline

NAMES = {IDLE: "idle", 7: "rank0", 8: "rank1", 9: "node1.irq0", 50: "another program (pid 50, cc)"}
PROCESS_OF = {"rank0": "rank0", "rank1": "rank1", "node1.irq0": "node1.irq0", "node1.nic": "nic"}
SWITCHES = Switches(
    begins={
        0: [(100, 7), (1000, IDLE), (1500, 7)],
        1: [(200, 9), (300, 8), (1000, 50), (4000, 9), (4100, IDLE), (5000, 8), (9000, UNKNOWN)],
    },
    names={**NAMES, UNKNOWN: "not recorded"},
    process_of=PROCESS_OF,
)


def test_the_time_of_a_cpu_is_shared_out_among_those_that_had_it() -> None:
    use = CpuUse(SWITCHES)
    shares = {"rank1": 1000, "node1.irq0": 100, "another program (pid 50, cc)": 3000, "idle": 900}
    assert use.shares(1, 500, 5500) == shares
    assert next(iter(use.shares(1, 500, 5500))) == "another program (pid 50, cc)"
    assert use.shares(1, 8000, 9500) == {"rank1": 1000, "not recorded": 500}
    assert use.shares(0, 0, 150) == {"not recorded": 100, "rank0": 50}
    assert use.shares(0, 2000, 2100) == {"rank0": 100}
    assert use.shares(0, 2000, 2000) == {}


@pytest.mark.parametrize(("start", "end"), [(0, 10_000), (250, 4050), (300, 1000), (4000, 4000)])
def test_the_shares_of_a_time_are_all_of_it(start: int, end: int) -> None:
    use = CpuUse(SWITCHES)
    for cpu in (0, 1):
        assert sum(use.shares(cpu, start, end).values()) == end - start
        slices = list(use.slices(cpu, start, end))
        assert [until for _, until, _ in slices[:-1]] == [begin for begin, _, _ in slices[1:]]


def test_the_cpu_of_an_agent_is_the_one_that_its_process_had_last() -> None:
    moved = {0: SWITCHES.begins[0], 1: SWITCHES.begins[1], 2: [(6000, 8)]}
    use = CpuUse(replace(SWITCHES, begins=moved))
    assert use.cpu_of("rank1", 299) is None
    assert [use.cpu_of("rank1", time_ns) for time_ns in (300, 4500, 5999, 6000)] == [1, 1, 1, 2]
    assert use.cpu_of("node1.nic", 5000) is None
    assert use.cpu_of("node9.nic", 5000) is None


def timeline(switches: Switches) -> Timeline:
    """A message whose handler comes late, and whose rank has its CPU all the time from 5000 on."""
    packet = 39 | 1 << 16 | 1 << 48
    records = [
        TraceRecord(400, 0, "isend", 1 << 32 | 3 << 16 | 1, 2000),
        TraceRecord(4000, 2, "interrupt", 1, 0),
        TraceRecord(4000, 2, "event", packet, 3 << 48 | 3),
        TraceRecord(5200, 3, "wait_end", 2, 1),
        TraceRecord(5300, 3, "received", 1, 2000),
    ]
    seats = {"rank0": Seat(0, 0, 0), "rank1": Seat(1, 2, 3)}
    agents = ["rank0", "node1.nic", "node1.irq0", "rank1"]
    return Timeline(records, agents, seats=seats, switches=switches)


def test_a_stage_says_which_others_had_the_cpu_that_it_waited_for() -> None:
    told = [line for line in slowest_text(timeline(SWITCHES), 1).splitlines() if "CPU" in line]
    assert [line.partition("CPU 1: ")[2] for line in told] == [
        "another program (pid 50, cc) 3.000, rank1 0.600",
        "idle 0.900, rank1 0.200, node1.irq0 0.100",
    ]


def test_of_many_processes_the_longest_are_named() -> None:
    crowd = {number: f"another program (pid {number})" for number in range(100, 110)}
    begins = [(300, 8), *((10 * number, number) for number in crowd), (2000, 9)]
    switches = replace(SWITCHES, begins={1: begins}, names={**NAMES, **crowd})
    told = slowest_text(timeline(switches), 1).splitlines()[4].split(": ")[1].split(", ")
    assert told[:2] == ["node1.irq0 2.000", "another program (pid 109) 0.910"]
    assert told[2:] == ["rank1 0.600", "9 more 0.090"]


def test_switches_are_kept_with_the_trace(tmp_path: Path) -> None:
    for found in (SWITCHES, replace(SWITCHES, lost=3), Switches(absent="it is forbidden")):
        keep_trace(timeline(found), tmp_path / "trace.npz")
        assert load_trace(tmp_path / "trace.npz").switches == found


def test_what_is_missing_is_said() -> None:
    assert untold_by(timeline(SWITCHES)) == []
    forbidden = timeline(Switches(absent="it is forbidden"))
    [told] = untold_by(forbidden)
    assert "it is forbidden" in told
    [told] = untold_by(timeline(replace(SWITCHES, lost=3)))
    assert " 3 " in told
    assert "CPU" not in slowest_text(forbidden, 1)


def test_of_a_stranger_no_more_is_told_than_the_kernel_shows(tmp_path: Path) -> None:
    (tmp_path / "12").mkdir()
    (tmp_path / "12" / "comm").write_text("stress\x1b[1m\n")
    assert stranger(12, tmp_path) == r"another program (pid 12, stress\x1b[1m)"
    assert stranger(13, tmp_path) == "another program (pid 13)"


def test_two_clocks_are_compared_where_both_are_read_at_once() -> None:
    ahead = [ahead_of_monotonic_ns(lambda: time.monotonic_ns() + 10**12) for _ in range(3)]
    assert all(abs(each - 10**12) < 10**9 for each in ahead)
