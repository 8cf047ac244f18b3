"""The costs of an emulated host: a row each, from which parameters, platforms and reports come.

A cost is charged in addition to the time that this machine takes itself. The parameter of the same
name sets it, a platform gives it (settings/platform.py), and `free_cost` takes one of them away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Payer = Literal["rank", "handler", "nic", "kernel", "core"]
OURS = "ours"
# With this begin the names of counters of what agents have paid.
PAID = "paid_"


@dataclass(frozen=True)
class Cost:
    """A cost by the name of its parameter.

    `sentence` says for what `payer` pays: a rank's process, a handler, a NIC that is a process, the
    kernel on the caller's behalf, or a core, which does nothing meanwhile. `per` is the event that
    it is paid for. With `by_clock` a core of a higher frequency takes less; caches, memory, timers
    and the ways between cores do not. `unit` is "ns" or, of a rate, "B/s": 0 is free in both.
    `charged` is the platform's cost that sets it on both engines; with `whole` that includes the
    time that this machine takes itself. `least` above 0: it cannot be free.
    """

    name: str
    payer: Payer
    per: str
    sentence: str
    by_clock: bool = False
    default: int = 0
    least: int = 0
    unit: Literal["ns", "B/s"] = "ns"
    charged: str = ""
    whole: bool = False
    source: str = OURS

    @property
    def description(self) -> str:
        """The parameter's: sentence, unit, source."""
        return f"{self.sentence}, {self.unit} ({self.source})"

    @property
    def times_counter(self) -> str:
        """The counter of how often an agent has paid for it; of copies, of how many."""
        return f"{PAID}{self.name}"

    @property
    def total_counter(self) -> str:
        """The counter of what an agent has paid for it in all, ns."""
        return f"{PAID}{self.name}_total"


_ROWS = (
    # -- charged by both engines
    Cost(
        "interrupt_time_ns",
        "handler",
        "interrupt",
        "interrupt, from the NIC to the first poll: it takes at least so long",
        charged="interrupt_to_handler",
        whole=True,
    ),
    Cost(
        "packet_cost_ns",
        "handler",
        "packet",
        "packet in the receive handler",
        by_clock=True,
        charged="handler_per_packet",
    ),
    Cost(
        "event_cost_ns",
        "rank",
        "event",
        "event that a rank takes from its rings",
        by_clock=True,
        charged="rank_event",
    ),
    Cost(
        "send_cost_ns",
        "rank",
        "packet",
        "packet sent by a rank, or by a handler that answers a pull; the least distance of a "
        "generator's packets",
        by_clock=True,
    ),
    Cost(
        "reschedule_cost_ns",
        "kernel",
        "reschedule",
        "run of the kernel's scheduler for a rank: one for a yield, two for a sleep",
        by_clock=True,
        charged="context_switch",
    ),
    Cost(
        "handler_cost_ns",
        "rank",
        "notification",
        "run of the user-level notification handler",
        by_clock=True,
        charged="notification_handler",
    ),
    # -- processes of simulated hosts
    Cost(
        "poll_ns",
        "rank",
        "poll",
        "poll of a spinning process: the time from one look to the next",
        by_clock=True,
        default=50,
        least=1,
    ),
    Cost(
        "send_message_ns",
        "rank",
        "message",
        "message sent by a rank, in addition to its packets",
        by_clock=True,
    ),
    Cost(
        "receive_message_ns",
        "rank",
        "message",
        "message received by a rank, in addition to its events",
        by_clock=True,
    ),
    Cost(
        "signal_ns",
        "rank",
        "notification",
        "delivery of a notification's signal to its handler, and the return",
        by_clock=True,
    ),
    Cost("yield_ns", "kernel", "call", "sched_yield", by_clock=True, default=500, least=1),
    Cost(
        "wake_call_ns",
        "kernel",
        "call",
        "system call that wakes a process on another core",
        by_clock=True,
    ),
    Cost(
        "wake_here_call_ns",
        "kernel",
        "call",
        "system call that wakes a process on the caller's own core",
        by_clock=True,
    ),
    Cost(
        "sleep_call_ns",
        "kernel",
        "call",
        "system call that puts a process to sleep, until its core is free",
        by_clock=True,
    ),
    Cost(
        "timer_set_ns",
        "kernel",
        "call",
        "timer of a sleep, extra time of its call: the timeout lies within a tick",
    ),
    Cost(
        "timer_cancel_ns",
        "kernel",
        "wake-up",
        "cancelled timer of a sleep: the process goes on so much later",
    ),
    Cost("timer_late_ns", "core", "timer", "timer lateness: delay of a timed wake-up"),
    # -- their cores
    Cost(
        "switch_ns",
        "core",
        "switch",
        "context switch from one process to another, or from none",
        by_clock=True,
    ),
    Cost(
        "wake_ns",
        "core",
        "wake-up",
        "wake-up latency on another core, from the waking call until the process starts",
    ),
    Cost(
        "preempt_ns",
        "core",
        "wake-up",
        "extra wake-up latency of a process or a handler when its core is busy",
    ),
    Cost(
        "warm_up_ns",
        "core",
        "switch",
        "cache warm-up of a process whose core was another one's, or nobody's, before",
    ),
    Cost(
        "interrupt_stall_ns",
        "core",
        "interrupt",
        "stall of a busy core before a real-time process starts that another core woke; on one "
        "machine only",
    ),
    Cost(
        "timer_stall_ns",
        "core",
        "timer",
        "stall of a busy core before a process starts that a timer woke; at most timer_late_ns",
    ),
    Cost(
        "idle_exit_ns",
        "core",
        "wake-up",
        "wake-up of a sleeping core, before a handler or a process runs; a list, in files and "
        "scenarios: from deeper and deeper sleep",
    ),
    Cost(
        "interrupt_exit_ns",
        "core",
        "interrupt",
        "return from a handler to the process that it interrupted",
        by_clock=True,
    ),
    # -- handlers and NICs
    Cost(
        "handler_poll_ns",
        "handler",
        "poll",
        "handler's poll that finds packets, in addition to these",
        by_clock=True,
    ),
    Cost(
        "reap_ns",
        "handler",
        "packet",
        "completed send that a handler reaps before it polls: its buffer is freed",
        by_clock=True,
    ),
    Cost(
        "reply_ns",
        "handler",
        "packet",
        "pull reply sent by a handler, in addition to send_cost_ns",
    ),
    Cost(
        "nic_step_ns",
        "nic",
        "poll",
        "step of a NIC that is a process on a core of the host, in addition to its packets: each "
        "pass of the process has one for each of its NICs",
        by_clock=True,
    ),
    Cost(
        "nic_frame_ns",
        "nic",
        "packet",
        "packet sent or received by a NIC that is a process on a core of the host, in addition to "
        "its copy",
        by_clock=True,
    ),
    # -- memory
    Cost(
        "copy_bytes_per_second",
        "core",
        "byte",
        "copy rate of a core; 0: copies take no time",
        unit="B/s",
    ),
    Cost(
        "copy_engine_bytes_per_second",
        "nic",
        "byte",
        "copy rate of the engine to which handlers hand their copies over (copy_offload); 0: "
        "copies take no time",
        unit="B/s",
    ),
    Cost("line_cache_ns", "core", "line", "cache line from a core with a shared cache"),
    Cost("line_package_ns", "core", "line", "cache line from another core of the package"),
    Cost("line_system_ns", "core", "line", "cache line from another package"),
    Cost(
        "handover_ns",
        "handler",
        "packet",
        "packet whose endpoint another core handled last, in addition to cache lines: the rest of "
        "the driver that follows it",
    ),
    Cost(
        "cold_packet_ns",
        "handler",
        "packet",
        "packet in a poll of a ring that another core polled last: the state of the kernel's "
        "receive path",
    ),
)
COSTS = {cost.name: cost for cost in _ROWS}
# By the platform's name for it.
CHARGED = {cost.charged: cost for cost in _ROWS if cost.charged}
# The parameter that takes one cost away: none of them, or one of FREE.
FREE_COST = "free_cost"
ALL_CHARGED = "none"
FREE = tuple(cost.name for cost in _ROWS if cost.least == 0)
