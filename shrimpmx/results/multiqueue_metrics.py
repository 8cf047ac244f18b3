"""The metrics of steering and binding: what goes from core to core, and how fast messages are.

The ledger counts hand-overs where the receive handler runs: of an endpoint's descriptor, of a pull
handle and of an event-ring line. So they are exact also where cores outnumber CPUs (multiqueue,
2.1 and 4.2).
"""

from __future__ import annotations

from collections.abc import Callable

from shrimpmx.results.metric import Metric, Outcome, one, total
from shrimpmx.results.statistics import Samples

MIB = 1 << 20
# What handlers find with another core than theirs.
HANDOVERS = ("handover_endpoint", "handover_pull", "handover_event", "handover_event_back")
NO_PACKET = "no handler found a packet"
# Messages that are averaged: whole turns of interrupts over up to 16 cores (ours).
IN_A_ROW = 16
NO_SAMPLES = "the rank returned no samples"


def _per(names: tuple[str, ...], divisor: str, reason: str) -> Callable[[Outcome], Samples | str]:
    """Counters over another one, of all agents; `reason`: why there is none where that is 0."""

    def compute(outcome: Outcome) -> Samples | str:
        found = total(outcome.counters, divisor)
        moved = sum(total(outcome.counters, name) for name in names)
        return one(moved / found) if found else reason

    return compute


def _events_handed_over(outcome: Outcome) -> Samples | str:
    away = total(outcome.counters, "handover_event")
    events = away + total(outcome.counters, "recv_at_process")
    return one(100 * away / events) if events else "no handler wrote an event"


def _busiest_core(outcome: Outcome) -> Samples | str:
    nodes: dict[str, list[int]] = {}
    for name, values in outcome.counters.items():
        node, irq, _ = name.partition(".irq")
        if irq:
            nodes.setdefault(node, []).append(values.get("recv_packets", 0))
    packets = sum(map(sum, nodes.values()))
    return one(100 * sum(map(max, nodes.values())) / packets) if packets else NO_PACKET


def _sum(name: str) -> Callable[[Outcome], Samples | str]:
    """A counter over all agents, which may be none."""
    return lambda outcome: one(total(outcome.counters, name))


def _mean_half_round_trip(outcome: Outcome) -> Samples | str:
    if not outcome.samples.size:
        return NO_SAMPLES
    whole = outcome.samples.size // IN_A_ROW * IN_A_ROW
    if not whole:
        return f"fewer than {IN_A_ROW} messages"
    means: Samples = outcome.samples[:whole].reshape(-1, IN_A_ROW).mean(axis=1) / 1000
    return means


def _bandwidth(outcome: Outcome) -> Samples | str:
    if not outcome.samples.size:
        return NO_SAMPLES
    if not outcome.message_bytes:
        return "messages of 0 B carry nothing"
    return outcome.message_bytes / outcome.samples * (1e9 / MIB)


MULTIQUEUE_METRICS = (
    Metric(
        "mean_half_round_trip",
        "Half round trip, mean in a row",
        "us",
        f"mean half round trip of {IN_A_ROW} messages in a row: with interrupts in turn they "
        "alternate between short and long, and a median would be one of them",
        _mean_half_round_trip,
        "time",
    ),
    Metric(
        "bandwidth",
        "Throughput of a ping-pong",
        "MiB/s",
        "bytes of a message over half the round trip, as IMB PingPong has it",
        _bandwidth,
        "time",
        "higher",
    ),
    Metric(
        "handovers_per_packet",
        "Hand-overs per packet",
        "times",
        "descriptors, pull handles and lines of event rings that the handler found with another "
        "core, per packet",
        _per(HANDOVERS, "recv_packets", NO_PACKET),
        "count",
    ),
    Metric(
        "endpoint_handovers",
        "Hand-overs of endpoints per packet",
        "times",
        "endpoints' descriptors that the handler found with another core, per packet",
        _per(("handover_endpoint",), "recv_packets", NO_PACKET),
        "count",
    ),
    Metric(
        "pull_handovers",
        "Hand-overs of pull handles per reply",
        "times",
        "pull handles that the handler found with another core, per pull reply",
        _per(("handover_pull",), "recv_pull_reply", "no pull reply was received"),
        "count",
    ),
    Metric(
        "events_handed_over",
        "Events handed over",
        "%",
        "events that the handler wrote on another core than the one that their process runs on",
        _events_handed_over,
        "count",
    ),
    Metric(
        "queue_changes",
        "Changes of queue per packet",
        "times",
        "packets that came by another queue than the packet before for the same endpoint",
        _per(("rx_queue_changes",), "rx_packets", "no packet arrived"),
        "count",
    ),
    Metric(
        "flow_moves",
        "Endpoints sent to another queue",
        "moves",
        "times that a NIC sent an endpoint's packets to another queue from then on; one figure "
        "per run",
        _sum("flow_moves"),
        "count",
        "",
    ),
    Metric(
        "moves",
        "Processes moved",
        "moves",
        "times that ranks went to another core while they ran; one figure per run",
        _sum("moves"),
        "count",
        "",
    ),
    Metric(
        "busiest_core",
        "Share of the busiest core",
        "%",
        "packets of a node that the one of its cores handled that handles most",
        _busiest_core,
        "count",
    ),
)
