"""The host, and how a process waits there."""

from __future__ import annotations

from typing import Literal

from shrimpmx.errors import did_you_mean
from shrimpmx.settings.core_lists import AUTO, PER_QUEUE, ROUND_ROBIN, checked_affinity
from shrimpmx.settings.declared import (
    Count,
    Declared,
    Field,
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

    cores: int = Field(1, ge=1, le=64, description="emulated cores per node")
    irq_binding: str = Field(
        "auto",
        description="cores for interrupts: 'round-robin', all cores of a node in turn; "
        "'per-queue', queue q on core q; 'auto', round-robin with one queue, otherwise "
        "per-queue; or a list as in smp_affinity_list, for all queues or one per queue: 0/1/2-3 "
        "(multiqueue, 2.3 and 3.1); + stands for a comma",
    )
    rps_cpus: str = Field("", description="cores for steering 'rps', a list; empty: all (Linux)")
    irq_budget: int = Field(64, ge=1, le=1024, description="packets per poll (NAPI weight)")
    irq_demote_after: Count = Field(
        10,
        description="successive polls of a full budget before the handler gives up its real-time "
        "priority, as Linux moves to ksoftirqd; 0: never (receive livelock)",
    )
    event_ring: Literal["lock-free", "reset"] = Field(
        "lock-free",
        description="event ring: 'reset', as in both papers; 'lock-free', as in Open-MX 1.3.901",
    )
    event_ring_entries: RingEntries = Field(
        1024, description="events, and receive queue slots, per endpoint"
    )
    marks: tuple[MarkName, ...] = Field(
        MARK_NAMES, description="packet types marked as latency-sensitive (coalescing, III-B)"
    )
    pull_resend_delay_ns: ProtocolTime = Field(
        1_000_000_000,
        ge=1_000_000,
        description="time before a pull request is repeated, ns (Open-MX)",
    )
    mark_early: int = Field(
        0,
        ge=0,
        le=31,
        description="mis-ordering degree: fragments between a medium message's mark and its last "
        "fragment (coalescing, IV-C4)",
    )
    interrupt_time_ns: HostCost = cost_field("interrupt_time_ns")
    disable_cost_ns: HostCost = cost_field("disable_cost_ns")
    packet_cost_ns: HostCost = cost_field("packet_cost_ns")
    idle: Literal["sleep", "awake"] = Field(
        "sleep",
        description="idle cores 'sleep', or stay 'awake': by PM QoS where permitted, otherwise by "
        "a spinner of the idle class (coalescing, IV-B1)",
    )
    time_slice_ns: int = Field(
        0,
        ge=0,
        le=100_000_000,
        description="time slice of ranks and their company, ns, at least 100 000; 0: the "
        "kernel's, or that of the simulated host's scheduler (waiting, 7: "
        "scheduling effects)",
    )
    scheduler: Literal["kernel", "fair", "batch", "eevdf", "goodness", "gang"] = Field(
        "kernel",
        description="CPU scheduler of simulated hosts: 'fair', Linux 2.6.23 to 6.5; 'batch', the "
        "same without preemption by waking tasks; 'eevdf', Linux since 6.6; 'goodness', Linux "
        "2.0; 'gang', all ranks simultaneously (Ousterhout 1982); 'kernel', 'fair' on simulated "
        "hosts; real processes have this machine's scheduler",
    )
    sched_yield: Literal["last", "expire", "once"] = Field(
        "expire",
        description="yield under scheduler 'goodness': 'last', the process goes to the end of "
        "the queue and keeps the CPU (early Linux 2.0); 'expire', it loses its ticks (late 2.0); "
        "'once', another process goes first (2.2)",
    )
    wake_ups: Literal["at-once", "at-tick", "at-turns-end"] = Field(
        "at-once",
        description="when a woken process with more ticks left takes the CPU, under scheduler "
        "'goodness': 'at-once'; 'at-tick', at the next clock tick, as after interrupt handlers "
        "that do not call the scheduler (SA_INTERRUPT, Linux 1.2 and 2.0); 'at-turns-end', when "
        "the running process sleeps, yields or runs out of ticks",
    )
    napi_defer_hard_irqs: int = Field(
        10,
        ge=1,
        le=10_000,
        description="empty polls before napi-defer unmasks interrupts (Linux: 10 x 20 us)",
    )
    gro_flush_timeout_ns: HardwareTime = Field(
        20_000, ge=1_000, description="time between two polls of napi-defer, ns (Linux)"
    )
    irq_suspend_timeout_ns: HardwareTime = Field(
        1_000_000,
        ge=10_000,
        description="longest time that irq-suspend leaves packets to a polling rank, ns (Linux)",
    )
    copy_offload: bool = Field(
        False, description="let a dma agent make receive copies above the thresholds (Open-MX)"
    )
    copy_message_bytes: int = Field(
        65536, ge=0, description="shortest message with offloaded copies, bytes (Open-MX)"
    )
    copy_frame_bytes: int = Field(
        1024, ge=1, description="shortest offloaded copy, bytes (Open-MX)"
    )

    def check(self) -> None:
        self._check_lists()
        if 0 < self.time_slice_ns < 100_000:
            raise ValueError(
                f"time_slice_ns must be 0 or at least 100000, the kernel's shortest slice, not "
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
    """The waits of a process (waiting, 3.3), and their costs."""

    strategy: WaitName = Field("spin", description="waiting strategy")
    spin_ns: Nanoseconds = Field(
        SPIN_NS, description="spin limit of the hybrids, ns (T_block of the paper, footnote 2)"
    )
    spin_t_block: float = Field(
        0.0,
        ge=0,
        le=100,
        description="spin limit as a multiple of T_block (calibrated here, plus the host's "
        "charges), in place of spin_ns; 0: spin_ns (0.54, 0.62: Lim and Agarwal 1993; 1: "
        "waiting, 3.2)",
    )
    reschedule_cost_ns: HostCost = cost_field("reschedule_cost_ns")
    enable_cost_ns: HostCost = cost_field("enable_cost_ns")
    handler_cost_ns: HostCost = cost_field("handler_cost_ns")

    @property
    def nic_timer(self) -> bool:
        """Whether the strategy needs the timer of a vmmc NIC; a user's own never does."""
        return self.strategy in WAITING and WAITING[self.strategy].nic_timer
