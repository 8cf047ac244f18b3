"""The benchmarks of waiting: `wait.at_once` and `wait.wake`, for `shrimpmx bench`.

`wait.at_once` is a wait for something that has come already. `wait.wake` is waking a process that
blocks, from the waker's store to the first thing that the woken process does; `wait.wake_bare` is
the same by a futex and nothing else, and `wait.wake_ratio` the one by the other, of blocks of
exchanges measured alternately by the same two processes.
"""

from __future__ import annotations

import os
from functools import partial

from shrimpmx.bench import host_costs
from shrimpmx.bench.benchmark import Benchmark, Sample

NS_PER_US = 1000.0


def wait_benchmarks() -> list[Benchmark]:
    """Every benchmark of waiting."""
    found = [Benchmark("wait.at_once", "ns", _at_once, cpus=1)]
    for place, cpus, bound_by in (
        ("same-cpu", 1, "the kernel's switch"),
        ("other-cpu", 2, "the interrupt of a CPU"),
    ):
        for name, unit in (("wake", "us"), ("wake_bare", "us"), ("wake_ratio", "of bare")):
            measure = partial(_wake, name, cpus - 1, bound_by)
            found.append(Benchmark(f"wait.{name}[{place}]", unit, measure, cpus=cpus))
    return found


def _at_once(seconds: float) -> Sample:
    return Sample(host_costs.at_once(seconds), "the calls")


def _wake(name: str, other: int, bound_by: str, seconds: float) -> Sample:
    """`other`: index of the CPU, among those of this process, of the one that is woken."""
    cpus = sorted(os.sched_getaffinity(0))
    by_slot, by_futex = host_costs.wake_ups(cpus[0], cpus[other], seconds)
    if name == "wake_ratio":
        return Sample(by_slot / by_futex, bound_by)
    return Sample((by_slot if name == "wake" else by_futex) / NS_PER_US, bound_by)
