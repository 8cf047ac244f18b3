"""omx_spam: packets of 128 bytes and type 0, which no endpoint is meant for.

The host pays for each, an interrupt by the strategy's rule and a look, and counts it as dropped
for its invalid type; nothing reaches an endpoint. 2000 packets instead of a million: each
costs the same.
"""

from __future__ import annotations

import pytest
from support.virtual_cluster import MARK, NicCluster, pattern

from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import COALESCING_NAMES
from shrimpmx.shared.node import put_frame
from shrimpmx.wire.tables import node_address

COUNT, BATCH = 2_000, 200
INVALID_TYPE = 0
ETHERTYPE = b"\x86\xdf"


def spam(ptype: int) -> bytes:
    head = node_address(1) + node_address(0) + ETHERTYPE + b"\0\0"
    return (head + bytes([ptype])).ljust(128, b"\0")


@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
def test_invalid_packets_are_dropped_and_counted(coalescing: str) -> None:
    cluster = NicCluster(NicParameters(coalescing=coalescing))
    one, other, partner = cluster.pair()
    before = cluster.nic_counters(1)
    for _ in range(COUNT // BATCH):
        for _ in range(BATCH):
            assert put_frame(cluster.nodes[0], "core_tx", 0, spam(INVALID_TYPE))
        cluster.advance(200_000)
    nic, handler = cluster.nic_counters(1), cluster.control.agent_counters(1)
    assert nic["rx_packets"] - before["rx_packets"] == COUNT
    assert handler["drop_invalid_type"] == COUNT
    assert sum(n for name, n in handler.items() if name.startswith("drop_")) == COUNT
    assert nic["rx_marked"] == before["rx_marked"]
    assert nic["irq_raised"] == handler["interrupts"] > before["irq_raised"]
    assert other.counters()["recv_events"] <= 2, "those of the connect"
    receive = other.irecv(buffer := bytearray(5000), 1)
    one.isend(pattern(5000), partner, 1)
    assert cluster.wait(other, receive).code == "success"
    assert buffer == pattern(5000)


def test_a_mark_makes_no_valid_type_of_it() -> None:
    cluster = NicCluster(NicParameters(coalescing="open-mx"))
    _, _other, _ = cluster.pair()
    for _ in range(10):
        assert put_frame(cluster.nodes[0], "core_tx", 0, spam(INVALID_TYPE | MARK))
    cluster.settle()
    assert cluster.control.agent_counters(1)["drop_invalid_type"] == 10
    assert cluster.nic_counters(1)["rx_marked"] >= 10
