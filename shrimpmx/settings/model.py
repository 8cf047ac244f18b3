"""What an emulated host is: its packages, and what takes its cores time."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, model_validator

from shrimpmx.settings.declared import CoreCost, Declared, HostCost, HostCosts, HostRate, Ratios


class HostModelParameters(Declared):
    """A host of the simulated engine: its cores, and what takes them time. Real ones need none."""

    host_topology: str = Field(
        "package:2 l2:2 core:2 pu:1",
        description="packages, caches and cores of a host in hwloc's synthetic form; a host with "
        "more cores has more packages (multiqueue, figure 4)",
    )
    frequency_ratio: float = Field(
        1.0,
        ge=0.1,
        le=10,
        description="frequency of the cores, as a multiple of that of the cores whose costs the "
        "run has: what instructions take is shorter by it, what caches, memory and the ways "
        "between cores take is not (ours)",
    )
    poll_ns: CoreCost = Field(
        50, ge=1, description="from one look of a spinning process to its next, ns (ours)"
    )
    yield_ns: CoreCost = Field(500, ge=1, description="a sched_yield, ns (ours)")
    slice_ns: HostCost = Field(
        3_000_000,
        ge=1000,
        description="a time slice, ns; eight of them or more are a round of schedulers fair and "
        "batch (Linux 6.1 on eight CPUs, kernel/sched/fair.c)",
    )
    wakeup_ns: HostCost = Field(
        4_000_000,
        description="so much less CPU time a waking process must have had than the one that runs "
        "to take its CPU at once, ns (as slice_ns)",
    )
    switch_ns: CoreCost = Field(
        0, description="a core goes from one process to another, or begins one, ns (ours)"
    )
    wake_ns: HostCost = Field(
        0, description="from waking a process on another core until that core begins it, ns (ours)"
    )
    preempt_ns: HostCost = Field(
        0,
        description="so much later begins what is woken on another core, a process or a handler, "
        "if that core is not idle, ns (ours)",
    )
    wake_call_ns: CoreCost = Field(
        0, description="the call that wakes a process on another core, of its caller, ns (ours)"
    )
    wake_here_call_ns: CoreCost = Field(
        0, description="the call that wakes a process on its caller's own core, ns (ours)"
    )
    sleep_call_ns: CoreCost = Field(
        0, description="the call by which a process sleeps, until its core is free, ns (ours)"
    )
    warm_up_ns: HostCost = Field(
        0,
        description="a process that gets its core, from another one or from none, takes so much "
        "longer for what it does next: its code and its data have left the caches, ns (ours)",
    )
    wake_jitter: Ratios = Field(
        (1.0,),
        description="an interrupt until its handler polls, the way of a wake-up or a timer to its "
        "core, and what that core takes to wake up: their costs times one of these, drawn each "
        "time; a list, here as one value: 0.9,1,1.2 (ours)",
    )
    interrupt_stall_ns: HostCost = Field(
        0,
        description="the end of the time until a process of real-time priority begins that another "
        "core has woken: a core at work does nothing else in it, on one machine only, ns (ours)",
    )
    timer_stall_ns: HostCost = Field(
        0,
        description="the same of one whose sleep a time has ended; no longer than the timer is "
        "late, ns (ours)",
    )
    send_message_ns: CoreCost = Field(
        0, description="a message that a rank sends, beside its packets, ns (ours)"
    )
    receive_message_ns: CoreCost = Field(
        0, description="a message that a rank receives, beside its events, ns (ours)"
    )
    signal_ns: CoreCost = Field(
        0,
        description="a signal's way to the handler of a notification and back, of the process that "
        "gets it, ns (ours)",
    )
    timer_set_ns: HostCost = Field(
        0,
        description="so much longer takes the call by which a process sleeps, if a time will end "
        "its sleep within a tick, ns (ours)",
    )
    timer_cancel_ns: HostCost = Field(
        0,
        description="a process that is woken before such a time goes on so much later, ns (ours)",
    )
    timer_late_ns: HostCost = Field(
        0, description="a sleep that a time ends, ends so much later, ns (ours)"
    )
    handler_poll_ns: CoreCost = Field(
        0,
        description="a handler's poll that finds frames to handle, beside these, ns (ours)",
    )
    nic_step_ns: CoreCost = Field(
        0,
        description="a step of a NIC that is a process on a core of the host, beside its frames: a "
        "pass of its process has one of each of its NICs, ns (ours)",
    )
    nic_frame_ns: CoreCost = Field(
        0,
        description="a frame that a NIC sends or receives which is a process on a core of the "
        "host, beside its copy, ns (ours)",
    )
    reply_ns: HostCost = Field(
        0,
        description="a reply of a pull that a handler sends, beside send_cost_ns, ns (ours)",
    )
    tick_ns: HostCost = Field(
        4_000_000,
        description="between two ticks of a host's clock, at which turns of schedulers fair, batch "
        "and eevdf end, ns; 0: turns end at any time (Linux, CONFIG_HZ=250)",
    )
    tick_phase: Literal["random", "aligned"] = Field(
        "random",
        description="when a host's clock ticks first: 'random', drawn from the seed for each host; "
        "'aligned', all hosts at the same time (ours)",
    )
    copy_bytes_per_second: HostRate = Field(
        0, description="rate at which a core copies what it receives; 0: in no time (ours)"
    )
    copy_engine_bytes_per_second: HostRate = Field(
        0,
        description="rate at which a copy engine does the copies that handlers hand over to it "
        "(copy_offload); 0: in no time (ours)",
    )
    keeps_copies: bool = Field(
        False,
        description="ranks pay for the copy of a message that the library keeps for a resend; "
        "Open-MX, which sends again from its own queue, has none",
    )
    line_cache_ns: HostCost = Field(
        0, description="a cache line from a core that shares a cache, ns (ours)"
    )
    line_package_ns: HostCost = Field(
        0, description="a cache line from another core of the package, ns (ours)"
    )
    line_system_ns: HostCost = Field(0, description="a cache line from another package, ns (ours)")
    handover_ns: HostCost = Field(
        0,
        description="added to a frame whose endpoint another core had last, beside the lines: all "
        "else of the driver that follows it, ns (ours)",
    )
    cold_packet_ns: HostCost = Field(
        0,
        description="added to each frame of a poll if another core polled that ring last: what the "
        "kernel's receive path keeps there, ns (ours)",
    )
    interrupt_delivery_ns: HostCost = Field(
        0,
        description="part of interrupt_time_ns that passes before the interrupt reaches its core, "
        "which goes on with its work until then, ns (ours)",
    )
    interrupt_exit_ns: CoreCost = Field(
        0,
        description="from the end of a handler until what it has interrupted goes on, ns (ours)",
    )
    idle_exit_ns: HostCosts = Field(
        0,
        description="to wake a core that sleeps, before a handler or a process runs, ns; a list: "
        "from deeper and deeper sleep, in files and scenarios (ours)",
    )
    idle_after_ns: HostCosts = Field(
        0,
        description="a core without work sleeps after so long, ns; a list: one value for each of "
        "idle_exit_ns (ours)",
    )
    sleeps_with: Literal["none", "cache"] = Field(
        "none",
        description="the cores without which a core does not sleep: 'none', it sleeps by itself; "
        "'cache', those that share a cache with it (multiqueue, 4.3)",
    )

    @model_validator(mode="after")
    def _check(self) -> HostModelParameters:
        packages_of(self.host_topology)
        return self

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
                f"idle_exit_ns and idle_after_ns go together: set both, with as many values, not "
                f"{len(exits_ns)} and {len(after_ns)}; idle_exit_ns=0 is no sleep"
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
