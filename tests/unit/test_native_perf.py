"""Performance counters: a figure, or a reason why there is none."""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
import sys

import pytest

from shrimpmx.errors import InputError
from shrimpmx.native import perf


def test_usage_only_grows_and_counts_faults() -> None:
    before = perf.usage()
    with mmap.mmap(-1, mmap.PAGESIZE) as page:  # no allocator has had it before
        page[0] = 1
    after = perf.usage()
    assert before.keys() == after.keys()
    assert all(after[name] >= before[name] for name in before)
    assert after["minor_faults"] > before["minor_faults"]


def test_a_yield_to_oneself_is_no_voluntary_switch() -> None:
    before = perf.usage()["voluntary_switches"]
    for _ in range(10):
        os.sched_yield()
    assert perf.usage()["voluntary_switches"] - before <= 1


def test_usage_of_another_process_has_the_same_fields_and_then_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    used = perf.usage_of(child.pid)
    assert used is not None
    assert used.keys() == perf.usage().keys()
    child.communicate()
    assert perf.usage_of(child.pid) is None


def test_every_counter_is_a_figure_or_has_a_reason() -> None:
    with perf.PerfCounters() as counters:
        sum(range(10_000))
        counts = counters.read()
        assert set(counts) | set(counters.absent) == set(perf.EVENTS)
        assert not set(counts) & set(counters.absent)
        assert all(value >= 0 for value in counts.values())
        assert all(len(reason) > 10 for reason in counters.absent.values())


def test_the_task_clock_runs_where_it_is() -> None:
    with perf.PerfCounters(["task_clock"]) as counters:
        sum(range(100_000))
        counts = counters.read()
    assert counts.get("task_clock", 1) > 0
    counters.close()
    assert counters.read() == {}


def test_the_caches_counters_are_there_for_either_mode() -> None:
    assert {name.rpartition("_")[2] for name in perf.CACHE_EVENTS} == {"user", "kernel"}
    with perf.PerfCounters(perf.CACHE_EVENTS) as counters:
        counts = counters.read()
        assert set(counts) | set(counters.absent) == set(perf.CACHE_EVENTS)
        assert counters.user_only == []


def test_an_unknown_counter_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no counter 'tea'; there are branch_misses"):
        perf.PerfCounters(["tea"])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errno.ENOENT, "does not give the counter"),
        (errno.EACCES, "perf_event_paranoid"),
        (errno.ENOSYS, "built without perf events"),
        (errno.EMFILE, "Too many open files"),
    ],
)
def test_each_refusal_has_its_reason(error: int, words: str) -> None:
    assert words in perf.explain(error)
