"""The benchmarks of waiting: their names, and that each gives figures of what it says."""

from __future__ import annotations

import os

import numpy as np
import pytest

from shrimpmx.bench import host_costs
from shrimpmx.bench import run as bench
from shrimpmx.bench import run as bench_waiting
from shrimpmx.cluster.engine.forked import Forked

SECONDS = 0.02


def test_there_is_a_wake_up_beside_a_bare_one_for_each_distance() -> None:
    names = [benchmark.name for benchmark in bench_waiting.wait_benchmarks()]
    assert names == [
        "wait.at_once",
        *(
            f"wait.{name}[{place}]"
            for place in ("same-cpu", "other-cpu")
            for name in ("wake", "wake_bare", "wake_ratio")
        ),
    ]
    assert [b.name for b in bench.benchmarks(Forked()) if b.name.startswith("wait.")] == names


def test_each_block_of_wake_ups_has_a_bare_one_beside_it() -> None:
    before = os.sched_getaffinity(0)
    cpu = min(before)
    by_slot, by_futex = host_costs.wake_ups(cpu, cpu, SECONDS)
    assert os.sched_getaffinity(0) == before
    assert by_slot.size == by_futex.size > 0
    assert np.all(by_slot > 0)
    assert np.all(by_futex > 0)


def test_the_ratio_is_that_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = np.array([4.0, 9.0]), np.array([2.0, 3.0])
    monkeypatch.setattr(host_costs, "wake_ups", lambda *_arguments: pair)
    figures = {
        b.name: b.measure(SECONDS).figures.tolist()
        for b in bench_waiting.wait_benchmarks()
        if b.name.endswith("[same-cpu]")
    }
    assert figures == {
        "wait.wake[same-cpu]": [0.004, 0.009],
        "wait.wake_bare[same-cpu]": [0.002, 0.003],
        "wait.wake_ratio[same-cpu]": [2.0, 3.0],
    }


def test_a_wait_that_succeeds_at_once_is_timed() -> None:
    assert np.all(host_costs.at_once(SECONDS) > 0)
