"""The metrics of a run by name: unit, meaning, and how each follows from what was collected.

A metric that a run cannot give is a reason, never a blank.
"""

from __future__ import annotations

import functools

import numpy as np

from shrimpmx.results.cache_metrics import CACHE_METRICS
from shrimpmx.results.metric import (
    NO_SAMPLES,
    AbsentError,
    Metric,
    MetricTable,
    Outcome,
    shown_figures,
    some,
    times_of,
    total,
)
from shrimpmx.results.multiqueue_metrics import MULTIQUEUE_METRICS
from shrimpmx.results.statistics import Samples
from shrimpmx.results.waiting_metrics import WAITING_METRICS

__all__ = ["CAUSES", "METRICS", "Metric", "Outcome", "shown_figures", "total"]

METRICS = MetricTable()
# Packets of a message of any size, without acknowledgements.
MESSAGE_PACKETS = (
    *("recv_tiny", "recv_small", "recv_medium_frag"),
    *("recv_rndv", "recv_pull_request", "recv_pull_reply", "recv_notify"),
)
NO_MESSAGE = "no message was received"
NO_WAIT = "no rank waited"
NO_ARRIVAL = "no packet arrived"
NO_CPU_TIME = "the kernel reported no CPU time"


def _each_message(run: Outcome, *names: str) -> Samples:
    """How much each message moved the counters `names`, over all agents."""
    agents = some(run.per_message, "only the workload anatomy counts message by message").values()
    parts = [values[name] for values in agents for name in names if name in values]
    return np.sum(parts, axis=0) if parts else np.zeros(run.samples.size)


def _mean_by_message(run: Outcome, name: str) -> float:
    """The same, its mean over a run: interrupts differ from message to message."""
    return float(_each_message(run, name).mean())


def _samples(run: Outcome) -> Samples:
    some(run.samples.size, NO_SAMPLES)
    return run.samples


def _cpu_time_ns(run: Outcome, processes: list[str], absent: str) -> float:
    """User and system time of these processes."""
    if any("task_clock_ns" not in run.usage[name] for name in processes):
        raise AbsentError(absent)
    return sum(run.usage[name]["task_clock_ns"] for name in processes)


@METRICS.metric("Half round trip", "us", "time")
def half_round_trip(run: Outcome) -> Samples:
    """Half of the time of a message there and back; without replies, the time of a message."""
    return _samples(run) / 1000


@METRICS.metric("Round trip", "us", "time")
def round_trip(run: Outcome) -> Samples:
    """Time of a message there and back, computing included."""
    return _samples(run) / 500


@METRICS.metric("Message rate", "k msg/s", "time", "higher")
def message_rate(run: Outcome) -> float:
    """Messages received per second after the warm-up, in thousands; one figure per run."""
    return float((1e6 / times_of(run)).sum())


@METRICS.metric("Interrupts per message", "irq/msg", "count")
def interrupts_per_message(run: Outcome) -> float:
    """Interrupts raised by all NICs, also for acknowledgements and completed sends, from the run's
    start to its end, per message received."""
    if run.per_message:
        return _mean_by_message(run, "irq_raised")
    return run.total("irq_raised") / some(run.total("recv_messages"), NO_MESSAGE)


@METRICS.metric("Transfer time", "us", "time")
def transfer(run: Outcome) -> Samples:
    """Time from just before a send to the end of its receive."""
    return half_round_trip(run)


# Why a NIC raises an interrupt.
CAUSES = {
    "packet": "because a packet arrived",
    "marked": "for a marked packet",
    "deferred": "for a mark, deferred until later packets' DMA is complete",
    "timeout": "because the coalescing timer expired",
    "frames": "because as many packets wait as rx_frames says",
    "sent": "because a send completed",
}
for _cause, _why in CAUSES.items():
    METRICS[f"interrupts_{_cause}"] = Metric(
        f"interrupts_{_cause}",
        f"Interrupts of cause {_cause} per message",
        "irq/msg",
        f"interrupts raised by the NICs {_why}, per message",
        functools.partial(_mean_by_message, name=f"irq_raised_{_cause}"),
        "count",
    )


@METRICS.metric("Packets per message", "packets", "count")
def packets_per_message(run: Outcome) -> Samples:
    """Packets of each message, found by handlers, without acknowledgements."""
    return _each_message(run, *MESSAGE_PACKETS)


@METRICS.metric("Pull requests per message", "packets", "count")
def pull_requests_per_message(run: Outcome) -> Samples:
    """Pull requests of each message, found by handlers: one per block."""
    return _each_message(run, "recv_pull_request")


@METRICS.metric("Pull replies per message", "packets", "count")
def pull_replies_per_message(run: Outcome) -> Samples:
    """Pull replies of each message, found by handlers: the packets with its data."""
    return _each_message(run, "recv_pull_reply")


@METRICS.metric("Marked packets per message", "packets", "count")
def marked_per_message(run: Outcome) -> Samples:
    """Packets of each message that arrived with a mark."""
    return _each_message(run, "rx_marked")


@METRICS.metric("Acknowledgements per message", "packets", "count")
def acks_per_message(run: Outcome) -> float:
    """Packets that only acknowledge, per message."""
    return _mean_by_message(run, "recv_liback")


@METRICS.metric("Hand-overs per message", "times", "count")
def handovers_per_message(run: Outcome) -> float:
    """Transfers of endpoint descriptors and pull handles from core to core, per message."""
    found = ("handover_endpoint", "handover_pull")
    return sum(_mean_by_message(run, name) for name in found)


@METRICS.metric("Packets per interrupt", "pkt/irq", "count", "higher")
def packets_per_interrupt(run: Outcome) -> float:
    """Packets found by all handlers, per interrupt taken."""
    return run.total("recv_packets") / some(run.total("interrupts"), "no interrupt was raised")


@METRICS.metric("System calls per wait", "calls", "count")
def system_calls_per_wait(run: Outcome) -> float:
    """System calls for waiting, per wait of the ranks."""
    return run.account("system_calls") / some(run.account("waits"), NO_WAIT)


@METRICS.metric("Context switches per wait", "switches", "count")
def switches_per_wait(run: Outcome) -> float:
    """Voluntary and involuntary context switches of the ranks, per wait."""
    waits, absent = some(run.account("waits"), NO_WAIT), "the kernel gave no context switches"
    return run.used("voluntary_switches", "involuntary_switches", absent=absent) / waits


@METRICS.metric("Taken while spinning", "%", "count", "higher")
def taken_spinning(run: Outcome) -> float:
    """Share of waits that end before the rank gives up its CPU."""
    found = run.account("while_spinning") + run.account("at_once")
    return 100 * found / some(run.account("waits"), NO_WAIT)


@METRICS.metric("CPU µs of the ranks per message", "us", "time")
def cpu_per_message(run: Outcome) -> float:
    """User and system time of all ranks, per message received."""
    messages = some(run.total("recv_messages"), NO_MESSAGE)
    return run.used("task_clock_ns", absent=NO_CPU_TIME) / 1000 / messages


@METRICS.metric("CPU µs of the hosts per message", "us", "time")
def host_cpu_per_message(run: Outcome) -> float:
    """User and system time of all ranks and interrupt handlers, per message received."""
    messages = some(run.total("recv_messages"), NO_MESSAGE)
    hosts = [name for name in run.usage if name in run.ranks or ".irq" in name]
    return _cpu_time_ns(run, some(hosts, NO_CPU_TIME), NO_CPU_TIME) / 1000 / messages


@METRICS.metric("Longest deferral", "us", "time")
def deferral_longest(run: Outcome) -> float:
    """Longest deferral of a mark's interrupt."""
    some(run.total("irq_deferred"), "no interrupt was put off")
    return max(agent.get("irq_deferred_longest_ns", 0) for agent in run.counters.values()) / 1000


@METRICS.metric("Time per packet", "ns", "time")
def packet_time(run: Outcome) -> Samples:
    """Time from one invalid packet's drop to the next, after the warm-up; one figure per run."""
    return _samples(run)


@METRICS.metric("CPU time of the handlers per packet", "ns", "time")
def handler_cpu_per_packet(run: Outcome) -> float:
    """User and system time of all interrupt handlers, per packet found."""
    packets = some(run.total("recv_packets"), "no handler found a packet")
    return handlers_cpu_ns(run) / packets


@METRICS.metric("Interrupts per packet", "irq/pkt", "count")
def interrupts_per_packet(run: Outcome) -> float:
    """Interrupts raised by the NICs, per packet taken."""
    return run.total("irq_raised") / some(run.total("rx_packets"), NO_ARRIVAL)


@METRICS.metric("Packets without a mark", "%", "count")
def unmarked_share(run: Outcome) -> float:
    """Share of packets that arrived without a mark; in a stream these are acknowledgements."""
    # A generator takes acknowledgements too: what it sank is unmarked.
    packets = some(run.total("rx_packets", "sunk_packets"), NO_ARRIVAL)
    return 100 * (packets - run.total("rx_marked")) / packets


@METRICS.metric("Delay of the other protocol's packets", "us", "time")
def other_delay(run: Outcome) -> float:
    """Mean time of the other protocol's packets in host memory until a handler takes them."""
    packets = some(run.total("recv_other"), "no packet of another protocol was received")
    return run.total("recv_other_delay_ns") / packets / 1000


@METRICS.metric("Rate of the other protocol's packets", "k pkt/s", "time", "higher")
def other_packet_rate(run: Outcome) -> float:
    """Packets of the other protocol received per second of the ranks' work, in thousands."""
    packets = some(run.total("recv_other"), "no packet of another protocol was received")
    times = [ns for rank, ns in run.elapsed_ns.items() if rank in run.ranks]
    return packets * 1e6 / max(some(times, "no rank recorded the time of its work"))


@METRICS.metric("Marks deferred to the end", "%", "count", "higher")
def deferral_success(run: Outcome) -> float:
    """Share of messages with an early mark whose interrupt waited for the last packet."""
    # All packets behind a mark came while its interrupt was put off, so that it reports them.
    bridged = _each_message(run, "irq_deferred_packets")
    some(run.mis_ordering, "no packet comes behind a mark: mark_early and overtake are 0")
    return 100 * float((bridged == run.mis_ordering).mean())


for _table in (WAITING_METRICS, CACHE_METRICS, MULTIQUEUE_METRICS):
    METRICS.update(_table)


@METRICS.metric("Run time", "us", "time")
def run_time(run: Outcome) -> float:
    """Time from the start of the ranks' work to the end of the last rank's work."""
    times = [ns for rank, ns in run.elapsed_ns.items() if rank in run.ranks]
    return max(some(times, "no rank recorded the time of its work")) / 1000


@METRICS.metric("CPU time of the ranks", "us", "time")
def run_cpu_time(run: Outcome) -> float:
    """User and system time of all ranks during their work."""
    return run.used("task_clock_ns", absent="the kernel reported no CPU time of the ranks") / 1000


@METRICS.metric("CPU time of the handlers", "us", "time")
def run_handler_cpu_time(run: Outcome) -> float:
    """User and system time of all interrupt handlers during the ranks' work."""
    return handlers_cpu_ns(run) / 1000


@METRICS.metric("Interrupts of a run", "irq", "count")
def run_interrupts(run: Outcome) -> float:
    """Interrupts raised by the NICs during the ranks' work."""
    return run.total("irq_raised")


@METRICS.metric("Work's share of the run", "%", "count", "", is_judged=False)
def work_share(run: Outcome) -> float:
    """Run time as a share of the whole run, from the start of its processes to their end."""
    whole_ns = some(run.whole_ns, "only runs of programs tell how long all of them took")
    return 100 * run_time(run) * 1000 / whole_ns


def handlers_cpu_ns(run: Outcome) -> float:
    """CPU time of all interrupt handlers. AbsentError if there is none."""
    handlers = [usage for name, usage in run.usage.items() if ".irq" in name]
    some(handlers, "there is no interrupt handler: the NIC handles packets itself")
    if any("task_clock_ns" not in usage for usage in handlers):
        raise AbsentError("the kernel reported no CPU time of the handlers")
    return sum(usage["task_clock_ns"] for usage in handlers)
