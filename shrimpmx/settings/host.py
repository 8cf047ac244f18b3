"""The host, and how a process waits there."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from shrimpmx.errors import did_you_mean
from shrimpmx.settings.core_lists import AUTO, PER_QUEUE, ROUND_ROBIN, checked_affinity
from shrimpmx.settings.declared import (
    Count,
    Declared,
    HardwareTime,
    HostCost,
    Nanoseconds,
    ProtocolTime,
    RingEntries,
    WaitName,
    cost_field,
)
from shrimpmx.settings.strategies import SPIN_NS, WAITING

MarkName = Literal["tiny", "small", "medium", "rndv", "pull-request", "pull-reply", "notify"]
MARK_NAMES: tuple[MarkName, ...] = (
    "tiny",
    "small",
    "medium",
    "rndv",
    "pull-request",
    "pull-reply",
    "notify",
)


class HostParameters(Declared):
    """The host: interrupt handlers and the driver."""

    cores: int = Field(1, ge=1, le=64, description="emulated cores of a node")
    irq_binding: str = Field(
        "auto",
        description="cores that interrupts go to: 'round-robin' over all of a node; 'per-queue', "
        "queue q to core q; 'auto', the first with one queue, else the second; or a list as "
        "smp_affinity_list has it, for all queues or one for each: 0/1/2-3 (multiqueue, 2.3 and "
        "3.1); + stands for a comma",
    )
    rps_cpus: str = Field(
        "", description="cores that steering 'rps' hands packets to, a list; empty: all (Linux)"
    )
    irq_budget: int = Field(64, ge=1, le=1024, description="packets per poll (NAPI weight)")
    irq_demote_after: Count = Field(
        10,
        description="polls in a row that use up the budget before the handler gives up its "
        "real-time priority as Linux moves to ksoftirqd; 0: never (receive livelock)",
    )
    event_ring: Literal["lock-free", "reset"] = Field(
        "lock-free",
        description="'reset' is the ring of both papers, 'lock-free' that of Open-MX 1.3.901",
    )
    event_ring_entries: RingEntries = Field(1024, description="events, and recvq slots")
    marks: tuple[MarkName, ...] = Field(
        MARK_NAMES, description="packets that are marked latency-sensitive (coalescing, III-B)"
    )
    pull_resend_delay_ns: ProtocolTime = Field(
        1_000_000_000, ge=1_000_000, description="before a pull asks again, ns (Open-MX)"
    )
    mark_early: int = Field(
        0,
        ge=0,
        le=31,
        description="mis-ordering degree: a medium message's mark is on so many fragments before "
        "its last (coalescing, IV-C4)",
    )
    interrupt_time_ns: HostCost = cost_field("interrupt_time_ns")
    packet_cost_ns: HostCost = cost_field("packet_cost_ns")
    idle: Literal["sleep", "awake"] = Field(
        "sleep",
        description="'awake' keeps idle cores from sleeping: by PM QoS where permitted, else by a "
        "spinner of the idle class (coalescing, IV-B1)",
    )
    time_slice_ns: int = Field(
        0,
        ge=0,
        le=100_000_000,
        description="time slice of ranks and their company, ns, from 100 000 on; 0: as the kernel "
        "or the simulated host's scheduler gives (waiting, 7: scheduling effects)",
    )
    scheduler: Literal["kernel", "fair", "batch", "eevdf", "goodness", "gang"] = Field(
        "kernel",
        description="CPU scheduler of a simulated host: Linux 2.6.23 to 6.5 ('fair'), the same "
        "without preemption by tasks that wake ('batch'), since 6.6 ('eevdf'), 2.0 ('goodness'), "
        "or all ranks at the same time ('gang': Ousterhout 1982); 'kernel': this machine's, of "
        "real processes, and 'fair' of simulated ones",
    )
    sched_yield: Literal["last", "expire", "once"] = Field(
        "expire",
        description="sched_yield of scheduler 'goodness': the process goes to the end of the "
        "queue and keeps the CPU ('last', early Linux 2.0), loses its ticks ('expire', late 2.0), "
        "or lets another one go first ('once', 2.2)",
    )
    napi_defer_hard_irqs: int = Field(
        10, ge=1, le=10_000, description="empty polls before napi-defer unmasks (Linux: 10 x 20 us)"
    )
    gro_flush_timeout_ns: HardwareTime = Field(
        20_000, ge=1_000, description="between two polls of napi-defer, ns (Linux)"
    )
    irq_suspend_timeout_ns: HardwareTime = Field(
        1_000_000,
        ge=10_000,
        description="longest that irq-suspend leaves packets to a rank that polls, ns (Linux)",
    )
    copy_offload: bool = Field(
        False, description="a dma agent does the receive copies above the thresholds (Open-MX)"
    )
    copy_message_bytes: int = Field(
        65536, ge=0, description="shortest message whose copies are offloaded (Open-MX)"
    )
    copy_frame_bytes: int = Field(1024, ge=1, description="shortest copy that is (Open-MX)")

    @model_validator(mode="after")
    def _check(self) -> HostParameters:
        self._check_lists()
        if 0 < self.time_slice_ns < 100_000:
            raise ValueError(
                f"time_slice_ns must be 0 or at least 100000, the kernel's shortest, not "
                f"{self.time_slice_ns}"
            )
        entries = self.event_ring_entries
        if entries & (entries - 1) or entries % 255 == 0:
            raise ValueError(f"event_ring_entries must be a power of two, not {entries}")
        if self.irq_suspend_timeout_ns < self.gro_flush_timeout_ns:
            raise ValueError(
                f"irq_suspend_timeout_ns must not be shorter than gro_flush_timeout_ns, "
                f"{self.gro_flush_timeout_ns}, but is {self.irq_suspend_timeout_ns}"
            )
        return self

    def _check_lists(self) -> None:
        if self.irq_binding not in (AUTO, ROUND_ROBIN, PER_QUEUE):
            for part in self.irq_binding.split("/"):
                try:
                    checked_affinity(part, self.cores)
                except ValueError as error:
                    raise ValueError(
                        f"irq_binding: {error}; it is {AUTO}, {ROUND_ROBIN}, {PER_QUEUE} or a list "
                        f"of cores{did_you_mean(part, (AUTO, ROUND_ROBIN, PER_QUEUE))}"
                    ) from None
        if self.rps_cpus:
            try:
                checked_affinity(self.rps_cpus, self.cores)
            except ValueError as error:
                raise ValueError(f"rps_cpus: {error}") from None


# -- How a process waits.


class WaitParameters(Declared):
    """How a process waits (waiting, 3.3), and its host's costs for that."""

    strategy: WaitName = Field("spin", description="waiting strategy")
    spin_ns: Nanoseconds = Field(
        SPIN_NS, description="spin limit of the hybrids, ns (T_block of the paper, footnote 2)"
    )
    spin_t_block: float = Field(
        0.0,
        ge=0,
        le=100,
        description="spin limit as a multiple of T_block, this machine's calibrated one and what "
        "the host is charged beside it, in place of spin_ns; 0: spin_ns counts (0.54, 0.62: Lim "
        "and Agarwal 1993; 1: waiting, 3.2)",
    )
    reschedule_cost_ns: HostCost = cost_field("reschedule_cost_ns")
    handler_cost_ns: HostCost = cost_field("handler_cost_ns")

    @property
    def nic_timer(self) -> bool:
        """Whether the strategy needs the timer of a vmmc NIC; a user's own never does."""
        return self.strategy in WAITING and WAITING[self.strategy].nic_timer
