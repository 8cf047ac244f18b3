"""The costs of an emulated host: a row each, from which parameters, platforms and reports come.

A cost is charged in addition to the time that this machine takes itself. The parameter of the same
name sets it, a platform gives it (settings/platform.py), and `free_cost` takes one of them away.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Payer = Literal["rank", "handler", "nic", "kernel", "core"]
OURS = "ours"
# With this begin the names of counters of what agents have paid.
PAID = "paid_"


class Cost(NamedTuple):
    """A cost by the name of its parameter.

    `sentence` says for what `payer` pays: a rank's process, a handler, a NIC that is a process, the
    kernel on the caller's behalf, or a core, which does nothing meanwhile. `per` is the event that
    it is paid for. With `by_clock` a core of a higher frequency takes less; caches, memory, timers
    and the ways between cores do not. `unit` is "ns" or, of a rate, "B/s": 0 is free in both.
    `charged` is the platform's cost that sets it on both engines; with `whole` that includes the
    time that this machine takes itself. `least` above 0: it cannot be free. `calibrated_by` derives
    it from measurements of this machine (bench/calibration.py), and from other costs:
    "context_switch - yield_alone". `group` is the parameter's; a module of settings/ declares it,
    or for "model" this table alone. `several`: a list of values is one, too.
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
    calibrated_by: str = ""
    group: Literal["host", "mx", "wait", "model"] = "model"
    several: bool = False
    source: str = OURS

    @property
    def description(self) -> str:
        """The parameter's: sentence, unit, source."""
        return f"{self.sentence}, {self.unit} ({self.source})"

    @property
    def calibration(self) -> list[tuple[int, str]]:
        """The sum of `calibrated_by`: factors and names; empty where nothing measures the cost."""
        found = re.findall(r"(- )?(\d+ )?([a-z]\w*)", self.calibrated_by)
        return [((-1 if minus else 1) * int(times or 1), name) for minus, times, name in found]

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
        "least time of an interrupt, from the NIC to the first poll",
        charged="interrupt_to_handler",
        whole=True,
        calibrated_by="fast_interrupt",
        group="host",
    ),
    Cost(
        "packet_cost_ns",
        "handler",
        "packet",
        "packet in the receive handler",
        by_clock=True,
        charged="handler_per_packet",
        calibrated_by="handled_packet",
        group="host",
    ),
    Cost(
        "event_cost_ns",
        "rank",
        "event",
        "event taken by a rank from its rings",
        by_clock=True,
        charged="rank_event",
        calibrated_by="receive_fragment - frame_copy",
        group="mx",
    ),
    Cost(
        "send_cost_ns",
        "rank",
        "packet",
        "packet sent by a rank, or by a handler that answers a pull; also the least gap between "
        "packets of a generator",
        by_clock=True,
        calibrated_by="send_fragment - 2 frame_copy",
        group="mx",
    ),
    Cost(
        "reschedule_cost_ns",
        "kernel",
        "reschedule",
        "run of the kernel's scheduler for a rank: one per yield, two per sleep",
        by_clock=True,
        charged="context_switch",
        group="wait",
    ),
    Cost(
        "handler_cost_ns",
        "rank",
        "notification",
        "run of the user-level notification handler",
        by_clock=True,
        charged="notification_handler",
        group="wait",
    ),
    # -- processes of simulated hosts
    Cost(
        "poll_ns",
        "rank",
        "poll",
        "poll of a spinning process, from one look to the next",
        by_clock=True,
        default=50,
        least=1,
        calibrated_by="look",
    ),
    Cost(
        "send_message_ns",
        "rank",
        "message",
        "message sent by a rank, in addition to its packets",
        by_clock=True,
        calibrated_by="send_packet - send_cost_ns",
    ),
    Cost(
        "receive_message_ns",
        "rank",
        "message",
        "message received by a rank, in addition to its events",
        by_clock=True,
        calibrated_by="receive_packet - event_cost_ns",
    ),
    Cost(
        "signal_ns",
        "rank",
        "notification",
        "signal of a notification: delivery to its handler, and return",
        by_clock=True,
        calibrated_by="signal",
    ),
    Cost(
        "yield_ns",
        "kernel",
        "call",
        "sched_yield",
        by_clock=True,
        default=500,
        least=1,
        calibrated_by="yield_alone",
    ),
    Cost(
        "wake_call_ns",
        "kernel",
        "call",
        "system call that wakes a process on another core",
        by_clock=True,
        calibrated_by="wake_call",
    ),
    Cost(
        "wake_here_call_ns",
        "kernel",
        "call",
        "system call that wakes a process on the caller's core",
        by_clock=True,
        calibrated_by="preempting_wake - switch_ns",
    ),
    Cost(
        "sleep_call_ns",
        "kernel",
        "call",
        "system call that puts a process to sleep, until its core is free",
        by_clock=True,
        calibrated_by="handlers_wake - preempting_wake",
    ),
    Cost(
        "timer_set_ns",
        "kernel",
        "call",
        "timer of a sleep with a timeout within a tick: extra time of its system call",
        calibrated_by="timed_exit - interrupt_exit",
    ),
    Cost(
        "timer_cancel_ns",
        "kernel",
        "wake-up",
        "cancelled timer of a sleep: extra time before the process continues",
        calibrated_by="timed_interrupt - interrupt_to_handler",
    ),
    Cost(
        "timer_late_ns",
        "core",
        "timer",
        "timer lateness: delay of a timed wake-up",
        calibrated_by="late_timer - preempt_ns - switch_ns",
    ),
    # -- their cores
    Cost(
        "switch_ns",
        "core",
        "switch",
        "context switch to a process, from another one or from idle",
        by_clock=True,
        calibrated_by="context_switch - yield_alone",
    ),
    Cost(
        "wake_ns",
        "core",
        "wake-up",
        "wake-up latency on another core, from the waking call to the start of the process",
        calibrated_by="fast_interrupt - switch_ns",
    ),
    Cost(
        "preempt_ns",
        "core",
        "wake-up",
        "extra wake-up latency of a process or handler on a busy core",
        calibrated_by="interrupt_to_handler - fast_interrupt",
    ),
    Cost(
        "warm_up_ns",
        "core",
        "switch",
        "cache warm-up of a process after another one, or none, on its core",
        calibrated_by="warm_up",
    ),
    Cost(
        "interrupt_stall_ns",
        "core",
        "interrupt",
        "stall of a busy core before the start of a real-time process woken by another core; on "
        "one machine only",
        calibrated_by="interrupt_stall - switch_ns",
    ),
    Cost(
        "timer_stall_ns",
        "core",
        "timer",
        "stall of a busy core before the start of a process woken by a timer; at most "
        "timer_late_ns",
        calibrated_by="timer_stall - switch_ns",
    ),
    Cost(
        "idle_exit_ns",
        "core",
        "wake-up",
        "wake-up of a sleeping core, before its handler or process runs; a list, in files and "
        "scenarios: one value per depth of sleep",
        several=True,
    ),
    Cost(
        "interrupt_exit_ns",
        "core",
        "interrupt",
        "return from a handler to the interrupted process",
        by_clock=True,
        calibrated_by="interrupt_exit",
    ),
    # -- handlers and NICs
    Cost(
        "handler_poll_ns",
        "handler",
        "poll",
        "poll of a handler that finds packets, in addition to their costs",
        by_clock=True,
        calibrated_by="handler_poll",
    ),
    Cost(
        "reap_ns",
        "handler",
        "packet",
        "completed send reaped by a handler before its poll: its buffer is freed",
        by_clock=True,
    ),
    Cost(
        "reply_ns",
        "handler",
        "packet",
        "pull reply sent by a handler, in addition to send_cost_ns",
        calibrated_by="reply_copy",
    ),
    Cost(
        "nic_step_ns",
        "nic",
        "poll",
        "step of a NIC that runs as a process of the host, in addition to its packets; one per NIC "
        "and pass",
        by_clock=True,
        calibrated_by="nic_step",
    ),
    Cost(
        "nic_frame_ns",
        "nic",
        "packet",
        "packet sent or received by a NIC that runs as a process of the host, in addition to its "
        "copy",
        by_clock=True,
        calibrated_by="nic_frame",
    ),
    # -- memory
    Cost(
        "copy_bytes_per_second",
        "core",
        "byte",
        "copy rate of a core; 0: copies are free",
        unit="B/s",
    ),
    Cost(
        "copy_engine_bytes_per_second",
        "nic",
        "byte",
        "copy rate of the engine for offloaded copies (copy_offload); 0: copies are free",
        unit="B/s",
    ),
    Cost("line_cache_ns", "core", "line", "cache line from a core with a shared cache"),
    Cost("line_package_ns", "core", "line", "cache line from another core of the package"),
    Cost("line_system_ns", "core", "line", "cache line from another package"),
    Cost(
        "handover_ns",
        "handler",
        "packet",
        "packet whose endpoint another core handled last, in addition to cache lines: further "
        "state of the driver",
    ),
    Cost(
        "cold_packet_ns",
        "handler",
        "packet",
        "packet in a poll of a ring last polled by another core: state of the kernel's receive "
        "path",
    ),
)
COSTS = {cost.name: cost for cost in _ROWS}
# By the platform's name for it.
CHARGED = {cost.charged: cost for cost in _ROWS if cost.charged}
# The parameter that takes one cost away: none of them, or one of FREE.
FREE_COST = "free_cost"
ALL_CHARGED = "none"
FREE = tuple(cost.name for cost in _ROWS if cost.least == 0)
