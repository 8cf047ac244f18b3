"""The benchmarks of waiting: `wait.at_once` and `wait.wake`, for `shrimpmx bench`.

`wait.at_once` is a wait for something that has come already. `wait.wake` is waking a process that
blocks, from the waker's store to the first thing that the woken process does; `wait.wake_bare` is
the same by a futex and nothing else, and `wait.wake_ratio` the one by the other, of blocks of
exchanges measured alternately by the same two processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shrimpmx.bench import wait_costs

Figures = npt.NDArray[np.float64]

NS_PER_US = 1000.0


@dataclass(frozen=True)
class WaitBenchmark:
    """A benchmark: `figures(seconds)` takes one turn of it, in `unit`, with `cpus` CPUs."""

    name: str
    unit: str
    figures: Callable[[float], Figures]
    bound_by: str
    cpus: int


def wait_benchmarks() -> list[WaitBenchmark]:
    """Every benchmark of waiting."""
    found = [WaitBenchmark("wait.at_once", "ns", wait_costs.at_once, "the calls", 1)]
    for place, cpus, bound_by in (
        ("same-cpu", 1, "the kernel's switch"),
        ("other-cpu", 2, "the interrupt of a CPU"),
    ):
        found += [
            WaitBenchmark(f"wait.{name}[{place}]", unit, _wake(name, cpus - 1), bound_by, cpus)
            for name, unit in (("wake", "us"), ("wake_bare", "us"), ("wake_ratio", "of bare"))
        ]
    return found


def _wake(name: str, other: int) -> Callable[[float], Figures]:
    """`other`: index of the CPU, among those of this process, of the one that is woken."""

    def figures(seconds: float) -> Figures:
        cpus = sorted(os.sched_getaffinity(0))
        by_slot, by_futex = wait_costs.wake_ups(cpus[0], cpus[other], seconds)
        if name == "wake_ratio":
            return by_slot / by_futex
        return (by_slot if name == "wake" else by_futex) / NS_PER_US

    return figures
