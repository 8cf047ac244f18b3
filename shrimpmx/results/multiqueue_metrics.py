"""The metrics of steering and binding: what goes from core to core, and how fast messages are.

The ledger counts hand-overs where the receive handler runs: of an endpoint's descriptor, of a pull
handle and of an event-ring line. So they are exact also where cores outnumber CPUs (multiqueue,
2.1 and 4.2).
"""

from __future__ import annotations

from shrimpmx.results.metric import NO_SAMPLES, MetricTable, Outcome, some, times_of
from shrimpmx.results.statistics import Samples

MULTIQUEUE_METRICS = MetricTable()
MIB = 1 << 20
# What handlers find with another core than theirs.
HANDOVERS = ("handover_endpoint", "handover_pull", "handover_event", "handover_event_back")
NO_PACKET = "no handler found a packet"
# Messages that are averaged: whole turns of interrupts over up to 16 cores (ours).
IN_A_ROW = 16


@MULTIQUEUE_METRICS.metric("Half round trip, mean in a row", "us", "time")
def mean_half_round_trip(run: Outcome) -> Samples:
    """Mean of 16 consecutive half round trips. If cores are interrupted in turn, short and long
    times alternate, and a median would be one of the two.
    """
    whole = some(run.samples.size, NO_SAMPLES) // IN_A_ROW * IN_A_ROW
    rows = run.samples[: some(whole, f"fewer than {IN_A_ROW} messages")].reshape(-1, IN_A_ROW)
    means: Samples = rows.mean(axis=1) / 1000
    return means


@MULTIQUEUE_METRICS.metric("Throughput of a ping-pong", "MiB/s", "time", "higher")
def bandwidth(run: Outcome) -> Samples:
    """Message length over half the round trip, as in IMB PingPong."""
    times = times_of(run)
    return some(run.message_bytes, "messages of 0 B carry nothing") / times * (1e9 / MIB)


@MULTIQUEUE_METRICS.metric("Hand-overs per packet", "times", "count")
def handovers_per_packet(run: Outcome) -> float:
    """Transfers of descriptors, pull handles, event ring lines from core to core, per packet."""
    return run.total(*HANDOVERS) / some(run.total("recv_packets"), NO_PACKET)


@MULTIQUEUE_METRICS.metric("Hand-overs of endpoints per packet", "times", "count")
def endpoint_handovers(run: Outcome) -> float:
    """Transfers of endpoint descriptors from core to core, per packet."""
    return run.total("handover_endpoint") / some(run.total("recv_packets"), NO_PACKET)


@MULTIQUEUE_METRICS.metric("Hand-overs of pull handles per reply", "times", "count")
def pull_handovers(run: Outcome) -> float:
    """Transfers of pull handles from core to core, per pull reply."""
    replies = some(run.total("recv_pull_reply"), "no pull reply was received")
    return run.total("handover_pull") / replies


@MULTIQUEUE_METRICS.metric("Events handed over", "%", "count")
def events_handed_over(run: Outcome) -> float:
    """Share of events written on another core than the core of their process."""
    events = run.total("handover_event", "recv_at_process")
    return 100 * run.total("handover_event") / some(events, "no handler wrote an event")


@MULTIQUEUE_METRICS.metric("Changes of queue per packet", "times", "count")
def queue_changes(run: Outcome) -> float:
    """Packets through another queue than the endpoint's previous packet, per packet."""
    return run.total("rx_queue_changes") / some(run.total("rx_packets"), "no packet arrived")


@MULTIQUEUE_METRICS.metric("Endpoints sent to another queue", "moves", "count", "")
def flow_moves(run: Outcome) -> float:
    """Changes of an endpoint's queue by a NIC; one figure per run."""
    return run.total("flow_moves")


@MULTIQUEUE_METRICS.metric("Processes moved", "moves", "count", "")
def moves(run: Outcome) -> float:
    """Moves of ranks to another core during their work; one figure per run."""
    return run.total("moves")


@MULTIQUEUE_METRICS.metric("Share of the busiest core", "%", "count")
def busiest_core(run: Outcome) -> float:
    """Share of packets handled by the busiest core of their node."""
    nodes: dict[str, list[int]] = {}
    for name, values in run.counters.items():
        node, irq, _ = name.partition(".irq")
        if irq:
            nodes.setdefault(node, []).append(values.get("recv_packets", 0))
    return 100 * sum(map(max, nodes.values())) / some(sum(map(sum, nodes.values())), NO_PACKET)
