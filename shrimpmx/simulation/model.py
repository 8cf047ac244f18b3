"""What an emulated host takes for what costs nothing under a virtual clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HostModel:
    """Times of a simulated host, ns; what a platform charges comes on top.

    `poll_ns`: from one look of a spinning process to its next (ours). `yield_ns`: a sched_yield
    (ours). `slice_ns`: how long a task keeps its CPU while others want it;
    `wakeup_ns`: how much less a waking task must have had to get the CPU at once (Linux 6.1,
    kernel/sched/fair.c: 0.75 and 1 ms, times 4 on eight CPUs).
    """

    poll_ns: int = 50
    yield_ns: int = 500
    slice_ns: int = 3_000_000
    wakeup_ns: int = 4_000_000
