"""Context switches of real runs, as the kernel records them."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import time
from itertools import pairwise
from pathlib import Path

import pytest
from support.clusters import pingpong_pair, run

from shrimpmx.cli import main
from shrimpmx.cluster.engine import switches
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.native.perf import UNKNOWN, SwitchLog, SwitchRing
from shrimpmx.settings.host import WaitParameters
from shrimpmx.show.cpu_use import CpuUse

ENTRIES = 1 << 18
SLEEPS, SLEEP_S = 20, 0.005


def needs_switches() -> None:
    """Skip where the kernel gives no switches."""
    try:
        SwitchRing(min(os.sched_getaffinity(0))).close()
    except OSError as error:
        pytest.skip(str(error.strerror))


def two_on_one_core() -> ClusterSpec:
    """Two ranks of one node take turns on its only core: each sleeps until the other one sends.

    Other programs of a busy machine fill a log with 100 switches in a millisecond.
    """
    options = {"iterations": 40, "size_bytes": 0, "warmup": 0}
    ranks = tuple(RankSpec(0, "pingpong", options=options) for _ in range(2))
    return ClusterSpec(ranks=ranks, wait=WaitParameters(strategy="block"), trace_entries=ENTRIES)


def test_two_ranks_on_one_cpu_take_turns() -> None:
    needs_switches()
    result = run(two_on_one_core())
    cpus = {each.cpu for each in result.placement.processes if each.role == "rank"}
    [cpu] = cpus
    found = result.switches
    begins = found.begins[cpu]
    assert found.absent == ""
    assert all(one[0] <= other[0] for one, other in pairwise(begins))
    assert all(one[1] != other[1] for one, other in pairwise(begins))
    assert begins[-1][1] == UNKNOWN
    # Each message of one to the other is a turn of the rank that gets it, whatever comes between.
    names = [found.names[number] for _, number in begins]
    turns = [name for name in names if name in ("rank0", "rank1")]
    changes = sum(one != other for one, other in pairwise(turns))
    assert changes >= 40
    # What each of them has recorded it has recorded while it had its CPU, as the last one of two.
    use = CpuUse(found)
    own = {"rank0", "rank1"}
    records = [each for each in result.records if result.agents[each.agent] in own]
    assert len(records) >= 4 * 40
    assert {use.cpu_of(result.agents[each.agent], each.time_ns) for each in records} == cpus


def test_a_run_that_is_not_traced_opens_no_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switches, "SwitchRing", lambda cpu: pytest.fail(f"a ring of CPU {cpu}"))
    assert run(pingpong_pair(5)).switches == switches.Switches()


def test_a_kernel_that_refuses_leaves_the_rest_of_the_trace_and_both_commands_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refused(_cpu: int) -> SwitchRing:
        raise PermissionError(13, "as a test wants it")

    monkeypatch.setattr(switches, "SwitchRing", refused)
    few = ("size-bytes=0", "coalescing=disabled", "iterations=5", "repeats=1")
    settings = [word for each in few for word in ("--set", each)]
    place = str(tmp_path / "traced")
    assert main(["run", "smoke/pingpong", *settings, "--trace", "--output", place]) == 0
    assert capsys.readouterr().out.count("as a test wants it") == 1
    assert main(["trace", place]) == 0
    assert capsys.readouterr().out.count("as a test wants it") == 1


def test_a_ring_without_memory_is_refused_and_leaves_no_descriptor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs_switches()

    def refused(_descriptor: int, _size_bytes: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(mmap, "mmap", refused)
    with pytest.raises(OSError, match="perf_event_mlock_kb"):
        SwitchRing(min(os.sched_getaffinity(0)))
    assert os.listdir("/proc/self/fd") == before


def test_a_ring_that_is_read_too_late_counts_what_is_lost() -> None:
    needs_switches()
    cpu = min(os.sched_getaffinity(0))
    log = SwitchLog([cpu], 4096)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        with contextlib.closing(SwitchRing(cpu)) as ring:
            _take_turns(20_000)
            # The kernel tells of what it lost with the next record that finds room.
            ring.drain(log)
            _take_turns(10)
            ring.drain(log)
            assert ring.lost > 0
    finally:
        os.sched_setaffinity(0, before)
    assert UNKNOWN in {number for _, number in log.begins()[cpu]}


def test_a_process_that_sleeps_has_no_cpu_whichever_it_was() -> None:
    needs_switches()
    cpus = os.sched_getaffinity(0)
    for cpu in {min(cpus), max(cpus)}:
        log = SwitchLog([cpu], 4096)
        with contextlib.closing(SwitchRing(cpu)) as ring:
            child = _sleeper(cpu)
            os.waitpid(child, 0)
            ring.drain(log)
        # It gets the CPU anew after each sleep.
        assert sum(number == child for _, number in log.begins()[cpu]) >= SLEEPS


def _sleeper(cpu: int) -> int:
    """The pid of a process that sleeps on that CPU, over and over, and ends."""
    child = os.fork()
    if child == 0:
        try:
            os.sched_setaffinity(0, {cpu})
            for _ in range(SLEEPS):
                time.sleep(SLEEP_S)
        finally:
            os._exit(0)
    return child


def _take_turns(count: int) -> None:
    """Two processes on this one's CPUs answer each other by pipes."""
    there, here = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(there[1])
        while os.read(there[0], 1):
            os.write(here[1], b"x")
        os._exit(0)
    for _ in range(count):
        os.write(there[1], b"x")
        os.read(here[0], 1)
    os.close(there[1])
    os.waitpid(child, 0)
    for each in (there[0], *here):
        os.close(each)
