"""The library over the real firmware, link, interrupt agents and receive handlers."""

from __future__ import annotations

import pytest
from support.exchange import exchange
from support.virtual_cluster import NicCluster, pattern

from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import COALESCING_NAMES

FAULTS = {
    "loss": LinkFaults(loss=0.1),
    "duplicate": LinkFaults(duplicate=0.2),
    "corrupt": LinkFaults(corrupt=0.1),
    "corrupt small": LinkFaults(corrupt=0.3, only=("small",)),
    "corrupt acks": LinkFaults(corrupt=0.3, only=("truc",), seed=2),
    "corrupt connects": LinkFaults(corrupt=0.6, only=("connect",)),
    "reorder 1": LinkFaults(reorder=0.2, reorder_degree=1),
    "reorder 3": LinkFaults(reorder=0.2, reorder_degree=3),
    "reorder 40": LinkFaults(reorder=0.1, reorder_degree=40),
    "all": LinkFaults(loss=0.05, duplicate=0.1, reorder=0.1, reorder_degree=7),
}
# Bytes, packets at MTU 1500 and at 9000.
GOLDEN = [(0, 1, 1), (128, 1, 1), (129, 1, 1), (1452, 1, 1), (4096, 3, 1), (32768, 23, 4)]


@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
@pytest.mark.parametrize("mtu", [1500, 9000])
def test_packets_and_marks_reach_the_far_nic(coalescing: str, mtu: int) -> None:
    cluster = NicCluster(NicParameters(mtu=mtu, coalescing=coalescing))
    one, other, partner = cluster.pair()
    cluster.settle()
    for length, at_1500, at_9000 in GOLDEN:
        before = cluster.nic_counters(1)
        received = bytearray(length)
        receive = other.irecv(received, 1)
        one.isend(pattern(length), partner, 1)
        assert cluster.wait(other, receive).transferred == length
        after = cluster.nic_counters(1)
        assert received == pattern(length)
        packets = after["rx_packets"] - before["rx_packets"]
        assert packets == (at_1500 if mtu == 1500 else at_9000)
        assert after["rx_marked"] - before["rx_marked"] == 1
        cluster.advance(20_000_000)


@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
@pytest.mark.parametrize("fault", FAULTS)
def test_exactly_once_and_in_order_under_link_faults(coalescing: str, fault: str) -> None:
    parameters = NicParameters(coalescing=coalescing)
    cluster = NicCluster(parameters, FAULTS[fault])
    one, other, partner = cluster.pair()
    back = cluster.connect(other, 0)
    exchange(cluster, one, other, partner)
    exchange(cluster, other, one, back)
    name, counter = (
        fault.split()[0],
        {"loss": "lost", "reorder": "reordered", "corrupt": "corrupted"},
    )
    happened = cluster.nic_counters(0)
    if name != "all":
        assert happened[f"link_{counter.get(name, name + 'd')}"] > 0


def drops(cluster: NicCluster, node: int) -> dict[str, int]:
    """What the receive handler of `node` dropped, by reason."""
    counters = cluster.control.agent_counters(node)
    return {name: n for name, n in counters.items() if name.startswith("drop_") and n}


def test_the_nic_drops_what_was_corrupted_on_the_way() -> None:
    faults = LinkFaults(corrupt=0.2, duplicate=0.2)
    cluster = NicCluster(NicParameters(coalescing="open-mx"), faults)
    one, other, partner = cluster.pair()
    exchange(cluster, one, other, partner)
    cluster.settle()
    corrupted = cluster.nic_counters(0)["link_corrupted"]
    # A corrupted frame that is also doubled arrives twice.
    assert 0 < corrupted <= cluster.nic_counters(1)["rx_bad_fcs"] <= 2 * corrupted
    assert drops(cluster, 1) == {}


def test_without_the_check_corrupted_frames_reach_the_host() -> None:
    faults = LinkFaults(corrupt=1.0, fcs=False, only=("small",), seed=3)
    cluster = NicCluster(NicParameters(coalescing="open-mx"), faults)
    one, _, partner = cluster.pair()
    for number in range(100):
        one.isend(bytes(100), partner, number)
    cluster.settle()
    assert cluster.nic_counters(1)["rx_bad_fcs"] == 0
    assert cluster.nic_counters(1)["rx_packets"] >= 100
    assert sum(drops(cluster, 1).values()) > 0


@pytest.mark.parametrize("rings", ["rx", "events"])
def test_full_rings_are_repaired(rings: str) -> None:
    cluster = NicCluster(
        NicParameters(coalescing="timeout"),
        event_ring_entries=16 if rings == "events" else 1024,
        rx_ring_entries=16 if rings == "rx" else 256,
    )
    one, other, partner = cluster.pair()
    cluster.endpoints.remove(other)
    for number in range(60):
        one.isend(pattern(1000, number), partner, number)
    cluster.settle()
    if rings == "rx":
        assert cluster.nic_counters(1)["rx_drop_ring_full"] > 0
    else:
        assert cluster.control.agent_counters(1)["unexp_eventq_full"] > 0
    cluster.endpoints.append(other)
    for number in range(60):
        buffer = bytearray(1000)
        assert cluster.wait(other, other.irecv(buffer, number)).code == "success"
        assert buffer == pattern(1000, number)
    assert one.counters()["resent_messages"] > 0


def test_a_rank_reaches_itself_through_the_nic() -> None:
    cluster = NicCluster(NicParameters(coalescing="disabled"), nodes=1)
    one = cluster.open(0)
    itself = cluster.connect(one, 0)
    received = bytearray(3000)
    receive = one.irecv(received, 1)
    one.isend(pattern(3000), itself, 1)
    assert cluster.wait(one, receive).code == "success"
    assert received == pattern(3000)
