"""A simulated host: its packages, and the times of its cores."""

from __future__ import annotations

import re
from typing import Literal

from shrimpmx.settings.declared import Field, HostCost, HostCosts, Ratios, costs_of

# Parameters of cores that sleep.
OF_SLEEP = ("idle_exit_ns", "idle_after_ns", "sleeps_with")


class HostModelParameters(costs_of("model")):  # type: ignore[misc]
    """A host of the simulated engine: its cores, its kernel and their costs."""

    host_topology: str = Field(
        "package:2 l2:2 core:2 pu:1",
        description="packages, caches and cores of a host, as hwloc's synthetic topology; hosts "
        "with more cores have more packages (multiqueue, figure 4)",
    )
    frequency_ratio: float = Field(
        1.0,
        ge=0.1,
        le=10,
        description="core frequency, relative to the frequency at which the costs were measured: "
        "divides times of instructions, not of caches, memory, timers and paths between cores "
        "(ours)",
    )
    slice_ns: HostCost = Field(
        3_000_000,
        ge=1000,
        description="time slice, ns; under the schedulers fair and batch, fewer than eight tasks "
        "share eight slices (Linux 6.1 on eight CPUs, kernel/sched/fair.c)",
    )
    wakeup_ns: HostCost = Field(
        4_000_000,
        description="lead in CPU time that a running process must have over a waking one to be "
        "preempted by it, ns (Linux, as slice_ns)",
    )
    wake_jitter: Ratios = Field(
        (1.0,),
        description="scatter of interrupts, wake-ups, timers and core wake-ups: factors of their "
        "times, one drawn each time; a list, which --set takes as one value: 0.9,1,1.2 (ours)",
    )
    cost_jitter: Ratios = Field(
        (1.0,),
        description="scatter of all other costs: factors, one drawn for each charge; a list as "
        "for wake_jitter (ours)",
    )
    tick_ns: HostCost = Field(
        4_000_000,
        description="period of a host's clock tick, which ends turns of schedulers fair, batch "
        "and eevdf, ns; 0: turns end at any time (Linux, CONFIG_HZ=250)",
    )
    tick_phase: Literal["random", "aligned"] = Field(
        "random",
        description="first tick of a host's clock: 'random', drawn from the seed for each host; "
        "'aligned', simultaneous on all hosts (ours)",
    )
    keeps_copies: bool = Field(
        False,
        description="charge ranks for the library's copies of messages kept for a resend; Open-MX "
        "resends from its own queue without a copy",
    )
    interrupt_delivery_ns: HostCost = Field(
        0,
        description="part of interrupt_time_ns during which the core continues its work, ns (ours)",
    )
    idle_after_ns: HostCosts = Field(
        0,
        description="idle time before a core sleeps, ns; a list: one value for each depth of "
        "idle_exit_ns (ours)",
    )
    sleeps_with: Literal["none", "cache"] = Field(
        "none",
        description="other cores that must be idle before a core sleeps: 'none'; or 'cache', "
        "all with a shared cache (multiqueue, 4.3)",
    )

    def check(self) -> None:
        packages_of(self.host_topology)

    def idle_states(self) -> list[tuple[int, int]]:
        """After how long, and how long it takes to wake up then, ns, of each depth of sleep.

        ValueError if the two parameters do not go together, which a platform and a scenario may
        give.
        """
        if self.idle_exit_ns == 0:
            return [(0, 0)]
        exits_ns, after_ns = (
            each if isinstance(each, tuple) else (each,)
            for each in (self.idle_exit_ns, self.idle_after_ns)
        )
        if len(exits_ns) != len(after_ns):
            raise ValueError(
                f"idle_exit_ns has {len(exits_ns)} values and idle_after_ns {len(after_ns)}: give "
                "both equally many, or disable sleep with idle_exit_ns=0"
            )
        if list(after_ns) != sorted(set(after_ns)):
            raise ValueError(f"idle_after_ns must ascend, not {', '.join(map(str, after_ns))}")
        return list(zip(after_ns, exits_ns, strict=True))


def packages_of(host_topology: str) -> tuple[int, str]:
    """How many packages a host has, and what is in each, in hwloc's synthetic form; ValueError."""
    found = re.fullmatch(r"package:(\d+) (\S.*)", host_topology)
    if found is None or int(found[1]) < 1:
        raise ValueError(
            f'host_topology is written as "package:2 l2:2 core:2 pu:1", not {host_topology!r}'
        )
    return int(found[1]), found[2]
