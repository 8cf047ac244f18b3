"""The metrics of a run by name: unit, meaning, and how each follows from what was collected.

A metric that a run cannot give is a reason, never a blank.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shrimpmx.results.cache_metrics import CACHE_METRICS
from shrimpmx.results.metric import (
    Metric,
    Outcome,
    declare,
    one,
    ranks_account,
    ranks_usage,
    shown_figures,
    total,
)
from shrimpmx.results.multiqueue_metrics import MULTIQUEUE_METRICS
from shrimpmx.results.run_metrics import RUN_METRICS
from shrimpmx.results.statistics import Samples
from shrimpmx.results.waiting_metrics import WAITING_METRICS

__all__ = ["CAUSES", "METRICS", "Metric", "Outcome", "shown_figures", "total"]

# Packets that carry an acknowledgement and nothing else, as handlers count them.
ACKS = ("recv_liback",)
# Packets of a message of any size, without acknowledgements.
MESSAGE_PACKETS = (
    *("recv_tiny", "recv_small", "recv_medium_frag"),
    *("recv_rndv", "recv_pull_request", "recv_pull_reply", "recv_notify"),
)
NOT_BY_MESSAGE = "only the workload anatomy counts message by message"


def _each_message(*names: str) -> Callable[[Outcome], Samples | str]:
    """How much each message moved the counters `names`, over all agents."""

    def compute(outcome: Outcome) -> Samples | str:
        if not outcome.per_message:
            return NOT_BY_MESSAGE
        parts = [
            values[name]
            for values in outcome.per_message.values()
            for name in names
            if name in values
        ]
        return np.sum(parts, axis=0) if parts else np.zeros(outcome.samples.size)

    return compute


def _mean_by_message(*names: str) -> Callable[[Outcome], Samples | str]:
    """The same, its mean over a run: interrupts differ from message to message."""
    each = _each_message(*names)

    def compute(outcome: Outcome) -> Samples | str:
        found = each(outcome)
        return found if isinstance(found, str) else one(float(found.mean()))

    return compute


def _no_samples(outcome: Outcome) -> str | None:
    return None if outcome.samples.size else "the rank returned no samples"


def _round_trip(outcome: Outcome) -> Samples | str:
    return _no_samples(outcome) or outcome.samples / 500


def _half_round_trip(outcome: Outcome) -> Samples | str:
    return _no_samples(outcome) or outcome.samples / 1000


def _message_rate(outcome: Outcome) -> Samples | str:
    if not outcome.samples.size:
        return "the rank returned no samples"
    return one(float((1e6 / np.maximum(outcome.samples, 1e-3)).sum()))


def _interrupts_per_message(outcome: Outcome) -> Samples | str:
    if outcome.per_message:
        return _mean_by_message("irq_raised")(outcome)
    messages = total(outcome.counters, "recv_messages")
    if not messages:
        return "no message was received"
    return one(total(outcome.counters, "irq_raised") / messages)


def _packets_per_interrupt(outcome: Outcome) -> Samples | str:
    interrupts = total(outcome.counters, "interrupts")
    if not interrupts:
        return "no interrupt was raised"
    return one(total(outcome.counters, "recv_packets") / interrupts)


def _system_calls_per_wait(outcome: Outcome) -> Samples | str:
    waits = ranks_account(outcome, "waits")
    if not waits:
        return "no rank waited"
    return one(ranks_account(outcome, "system_calls") / waits)


def _taken_spinning(outcome: Outcome) -> Samples | str:
    waits = ranks_account(outcome, "waits")
    if not waits:
        return "no rank waited"
    found = ranks_account(outcome, "while_spinning") + ranks_account(outcome, "at_once")
    return one(100 * found / waits)


def _switches_per_wait(outcome: Outcome) -> Samples | str:
    waits = ranks_account(outcome, "waits")
    switches = ranks_usage(outcome, "voluntary_switches", "involuntary_switches")
    if not waits or switches is None:
        return "no rank waited" if not waits else "the kernel gave no context switches"
    return one(switches / waits)


def _cpu_per_message(outcome: Outcome) -> Samples | str:
    messages = total(outcome.counters, "recv_messages")
    used_ns = ranks_usage(outcome, "task_clock_ns")
    if not messages or used_ns is None:
        return "no message was received" if not messages else "the kernel gave no CPU time"
    return one(used_ns / 1000 / messages)


def _deferral_longest(outcome: Outcome) -> Samples | str:
    if not total(outcome.counters, "irq_deferred"):
        return "no interrupt was put off"
    name = "irq_deferred_longest_ns"
    return one(max(values.get(name, 0) for values in outcome.counters.values()) / 1000)


def _packet_time(outcome: Outcome) -> Samples | str:
    return _no_samples(outcome) or outcome.samples


def _host_cpu_per_message(outcome: Outcome) -> Samples | str:
    messages = total(outcome.counters, "recv_messages")
    hosts = [name for name in outcome.usage if name in outcome.ranks or ".irq" in name]
    if not messages:
        return "no message was received"
    if not hosts or any("task_clock_ns" not in outcome.usage[name] for name in hosts):
        return "the kernel gave no CPU time"
    return one(sum(outcome.usage[name]["task_clock_ns"] for name in hosts) / 1000 / messages)


def _handler_cpu_per_packet(outcome: Outcome) -> Samples | str:
    packets = total(outcome.counters, "recv_packets")
    handlers = [usage for name, usage in outcome.usage.items() if ".irq" in name]
    if not packets:
        return "no handler found a packet"
    if not handlers:
        return "there is no interrupt handler: the NIC handles packets itself"
    if any("task_clock_ns" not in usage for usage in handlers):
        return "the kernel gave no CPU time of the handlers"
    return one(sum(usage["task_clock_ns"] for usage in handlers) / packets)


def _interrupts_per_packet(outcome: Outcome) -> Samples | str:
    packets = total(outcome.counters, "rx_packets")
    if not packets:
        return "no packet arrived"
    return one(total(outcome.counters, "irq_raised") / packets)


def _unmarked_share(outcome: Outcome) -> Samples | str:
    """A generator takes acknowledgements too: what it sank is unmarked."""
    sunk = total(outcome.counters, "sunk_packets")
    packets = total(outcome.counters, "rx_packets")
    if not packets + sunk:
        return "no packet arrived"
    unmarked = packets - total(outcome.counters, "rx_marked") + sunk
    return one(100 * unmarked / (packets + sunk))


def _other_delay(outcome: Outcome) -> Samples | str:
    packets = total(outcome.counters, "recv_other")
    if not packets:
        return "no packet of another protocol was received"
    return one(total(outcome.counters, "recv_other_delay_ns") / packets / 1000)


def _deferral_success(outcome: Outcome) -> Samples | str:
    """All packets behind a mark came while its interrupt was put off, so that it reports them."""
    bridged = _each_message("irq_deferred_packets")(outcome)
    if isinstance(bridged, str):
        return bridged
    if not outcome.mis_ordering:
        return "no packet comes behind a mark: mark_early and overtake are 0"
    return one(100 * float((bridged == outcome.mis_ordering).mean()))


# Why a NIC raises an interrupt.
CAUSES = {
    "packet": "since each packet wishes one",
    "marked": "since a marked packet had arrived",
    "deferred": "for a mark, once the packets behind it had arrived too",
    "timeout": "since the coalescing timer ran out",
    "frames": "since so many packets waited",
}


METRICS = declare(
    Metric(
        "half_round_trip",
        "Half round trip",
        "us",
        "time from sending a message until the other rank has it",
        _half_round_trip,
        "time",
    ),
    Metric(
        "round_trip",
        "Round trip",
        "us",
        "there and back, computing included",
        _round_trip,
        "time",
    ),
    Metric(
        "message_rate",
        "Message rate",
        "k msg/s",
        "messages received per second behind the warm-up, in thousands; one figure per run",
        _message_rate,
        "time",
        "higher",
    ),
    Metric(
        "interrupts_per_message",
        "Interrupts per message",
        "irq/msg",
        "interrupts that the NICs raised, per message received",
        _interrupts_per_message,
        "count",
    ),
    Metric(
        "transfer",
        "Transfer time",
        "us",
        "from just before a send until the other rank's receive is done",
        _half_round_trip,
        "time",
    ),
    *(
        Metric(
            f"interrupts_{cause}",
            f"Interrupts of cause {cause} per message",
            "irq/msg",
            f"interrupts that the NICs raised per message, {why}",
            _mean_by_message(f"irq_raised_{cause}"),
            "count",
        )
        for cause, why in CAUSES.items()
    ),
    Metric(
        "packets_per_message",
        "Packets per message",
        "packets",
        "packets that handlers found, acknowledgements apart, of each message",
        _each_message(*MESSAGE_PACKETS),
        "count",
    ),
    Metric(
        "pull_requests_per_message",
        "Pull requests per message",
        "packets",
        "pull requests that handlers found, of each message: its blocks",
        _each_message("recv_pull_request"),
        "count",
    ),
    Metric(
        "pull_replies_per_message",
        "Pull replies per message",
        "packets",
        "pull replies that handlers found, of each message: its data",
        _each_message("recv_pull_reply"),
        "count",
    ),
    Metric(
        "marked_per_message",
        "Marked packets per message",
        "packets",
        "packets that arrived with a mark, of each message",
        _each_message("rx_marked"),
        "count",
    ),
    Metric(
        "acks_per_message",
        "Acknowledgements per message",
        "packets",
        "packets that only acknowledge, per message",
        _mean_by_message(*ACKS),
        "count",
    ),
    Metric(
        "packets_per_interrupt",
        "Packets per interrupt",
        "pkt/irq",
        "packets that a handler found, per interrupt it took",
        _packets_per_interrupt,
        "count",
        "higher",
    ),
    Metric(
        "system_calls_per_wait",
        "System calls per wait",
        "calls",
        "system calls that the ranks made to wait, per wait",
        _system_calls_per_wait,
        "count",
    ),
    Metric(
        "switches_per_wait",
        "Context switches per wait",
        "switches",
        "voluntary and involuntary switches of the ranks, per wait",
        _switches_per_wait,
        "count",
    ),
    Metric(
        "taken_spinning",
        "Taken while spinning",
        "%",
        "waits that ended before the rank gave up its CPU",
        _taken_spinning,
        "count",
        "higher",
    ),
    Metric(
        "cpu_per_message",
        "CPU µs of the ranks per message",
        "us",
        "user and system time of all ranks, per message received",
        _cpu_per_message,
        "time",
    ),
    Metric(
        "host_cpu_per_message",
        "CPU µs of the hosts per message",
        "us",
        "user and system time of all ranks and interrupt handlers, per message received",
        _host_cpu_per_message,
        "time",
    ),
    Metric(
        "deferral_longest",
        "Longest deferral",
        "us",
        "the longest time for which a mark's interrupt was put off",
        _deferral_longest,
        "time",
    ),
    Metric(
        "packet_time",
        "Time per packet",
        "ns",
        "time from one invalid packet's drop to the next's, behind the warm-up; one figure per run",
        _packet_time,
        "time",
    ),
    Metric(
        "handler_cpu_per_packet",
        "CPU time of the handlers per packet",
        "ns",
        "user and system time of all interrupt handlers, per packet that they found",
        _handler_cpu_per_packet,
        "time",
    ),
    Metric(
        "interrupts_per_packet",
        "Interrupts per packet",
        "irq/pkt",
        "interrupts that the NICs raised, per packet that they took",
        _interrupts_per_packet,
        "count",
    ),
    Metric(
        "unmarked_share",
        "Packets without a mark",
        "%",
        "share of all packets that arrived without a mark: acknowledgements, in a stream",
        _unmarked_share,
        "count",
    ),
    Metric(
        "other_delay",
        "Delay of the other protocol's packets",
        "us",
        "mean time of their packets in host memory until their handler has them",
        _other_delay,
        "time",
    ),
    Metric(
        "deferral_success",
        "Marks deferred to the end",
        "%",
        "messages whose early mark's interrupt was put off until their last packet had come",
        _deferral_success,
        "count",
        "higher",
    ),
    *WAITING_METRICS,
    *CACHE_METRICS,
    *MULTIQUEUE_METRICS,
    *RUN_METRICS,
)
