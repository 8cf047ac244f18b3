"""Rings far too small for what is sent: drops are counted, nothing is lost, nothing hangs."""

from __future__ import annotations

import pytest
from support.clusters import generator_stream, run, stream_pair

from shrimpmx.cluster.spec import GeneratorSpec
from shrimpmx.cluster.supervisor import Cluster
from shrimpmx.errors import SegmentError
from shrimpmx.params import HostParameters, MxParameters, NicParameters, WaitParameters

BLOCK = WaitParameters(strategy="block")
QUICK = MxParameters(resend_delay_ns=3_000_000, ack_delay_ns=500_000)


@pytest.mark.parametrize("event_ring", ["lock-free", "reset"])
def test_a_full_event_ring(event_ring: str) -> None:
    host = HostParameters(event_ring_entries=16, event_ring=event_ring)
    nic = NicParameters(coalescing="timeout", rx_usecs=75)
    result = run(stream_pair(600, 32, 256, wait=BLOCK, host=host, nic=nic, mx=QUICK))
    assert result.counters["rank1"]["recv_messages"] == 600
    assert result.counters["node1.irq0"]["unexp_eventq_full"] > 0


def test_full_rx_tx_and_link_rings() -> None:
    nic = NicParameters(
        coalescing="timeout", rx_ring_entries=16, tx_ring_entries=16, link_ring_entries=16
    )
    result = run(stream_pair(600, 1000, 256, wait=BLOCK, nic=nic, mx=QUICK))
    assert result.counters["rank1"]["recv_messages"] == 600
    assert result.counters["node1.nic"]["rx_packets"] >= 600


def test_the_generator_overruns_a_small_rx_ring() -> None:
    nic = NicParameters(coalescing="timeout", rx_ring_entries=16)
    generator = GeneratorSpec(window=64, resend_delay_ns=2_000_000)
    spec = generator_stream(1000, wait=BLOCK, nic=nic, mx=QUICK, generator=generator)
    result = run(spec)
    assert result.counters["rank0"]["recv_messages"] >= 1000
    assert result.counters["node0.nic"]["rx_drop_ring_full"] > 0


def test_a_full_dev_shm_is_told_and_leaves_nothing() -> None:
    nic = NicParameters(rx_ring_entries=65536, tx_ring_entries=65536, link_ring_entries=65536)
    spec = stream_pair(nodes=1024, nic=nic)
    with pytest.raises(SegmentError, match=r"not enough room in /dev/shm: .* MB needed"):
        Cluster(spec).run()
