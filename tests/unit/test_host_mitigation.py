"""Whole messages under the host's three strategies: NICs, handlers and polling ranks together.

The order in which agents and ranks run is drawn from a seed; times are virtual.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.virtual_cluster import MILLISECOND, NicCluster, pattern

from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import COALESCING
from shrimpmx.shared.geometry import BUSY_POLLS

DEFER = {"defer_hard_irqs": 10, "flush_timeout_ns": 20_000}
STRATEGIES = ("napi-defer", "irq-suspend", "watchdog")
LENGTHS = (0, 30, 100, 1452, 20_000, 200_000)


def cluster_of(coalescing: str, seed: int = 1, **more: Any) -> NicCluster:
    irq = {} if coalescing == "watchdog" else DEFER
    return NicCluster(
        NicParameters(coalescing=coalescing), seed=seed, irq=irq,
        busy_poll=BUSY_POLLS[COALESCING[coalescing].polling], **more,
    )  # fmt: skip


def exchange(cluster: NicCluster, rounds: int = 4) -> None:
    """Messages of every class both ways, each once, whole and in order."""
    one, other, there = cluster.pair()
    back = cluster.connect(other, 0)
    for number in range(rounds):
        for sender, receiver, partner in ((one, other, there), (other, one, back)):
            buffers = [bytearray(length) for length in LENGTHS]
            receives = [receiver.irecv(buffer, 1) for buffer in buffers]
            sends = [sender.isend(pattern(n, number), partner, 1) for n in LENGTHS]
            for receive, buffer in zip(receives, buffers, strict=True):
                assert cluster.wait(receiver, receive).length == len(buffer)
                assert buffer == pattern(len(buffer), number)
            for send in sends:
                assert cluster.wait(sender, send).code == "success"


@pytest.mark.parametrize("coalescing", STRATEGIES)
@pytest.mark.parametrize("seed", range(6))
def test_every_message_arrives_and_every_wish_ends(coalescing: str, seed: int) -> None:
    cluster = cluster_of(coalescing, seed)
    exchange(cluster)
    cluster.advance(10 * MILLISECOND)
    for node in (0, 1):
        nic, irq = cluster.nic_counters(node), cluster.control.agent_counters(node)
        assert nic["irq_raised"] == irq["interrupts"]
        assert 0 <= nic["irq_wished"] - nic["irq_raised"] - nic["irq_absorbed"] <= 1
        assert cluster.nodes[node].ring_depths()["rx", 0] == 0
        assert nic["rx_packets"] == irq["recv_packets"]
        assert nic["irq_raised"] < nic["rx_packets"]


@pytest.mark.parametrize("coalescing", STRATEGIES)
@pytest.mark.parametrize("seed", range(3))
def test_also_when_frames_are_lost(coalescing: str, seed: int) -> None:
    faults = LinkFaults(loss=0.02, duplicate=0.02, reorder=0.05, seed=seed + 1)
    exchange(cluster_of(coalescing, seed, faults=faults), rounds=2)


@pytest.mark.parametrize("seed", range(4))
def test_full_rings(seed: int) -> None:
    """Tx rings without room for the answers to 8 frames, rx rings that overflow."""
    for coalescing in STRATEGIES:
        exchange(cluster_of(coalescing, seed, tx_ring_entries=64, rx_ring_entries=64), rounds=2)


@pytest.mark.parametrize("coalescing", ["irq-suspend", "watchdog"])
def test_polling_ranks_need_few_interrupts(coalescing: str) -> None:
    """A rank that looks all the time finds all by itself."""
    cluster = cluster_of(coalescing)
    exchange(cluster)
    for node in (0, 1):
        irq = cluster.control.agent_counters(node)
        assert irq["busy_polls"] > 20
        assert irq["interrupts"] < cluster.nic_counters(node)["rx_packets"] / 10
