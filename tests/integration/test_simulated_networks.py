"""Whole runs on simulated networks: what arrives, what is counted, what a node takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.clusters import generator_stream, pingpong_pair, run

from shrimpmx.cluster.engine.memory import node_layout
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import InputError, NotHereError
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.node import Node
from shrimpmx.simulation.engine import Simulated

CONNECT_NS = 10**10
# As tools/simulated_scale.py has them for thousands of nodes.
SMALL_RINGS = {"rx_ring_entries": 32, "tx_ring_entries": 32, "link_ring_entries": 32}


def ring(rank: Any) -> dict[str, Any]:
    """Two rounds of its number to the next rank."""
    where = rank.place_of((rank.number + 1) % rank.size)
    right = rank.endpoint.connect(*where, timeout_ns=CONNECT_NS)
    out, into = np.full(64, rank.number % 251, np.uint8), np.zeros(64, np.uint8)
    for turn in range(2):
        received = rank.endpoint.irecv(into, match=turn)
        rank.endpoint.wait(rank.endpoint.isend(out, right, match=turn))
        rank.endpoint.wait(received)
    return {"got": into[:1]}


def shout(rank: Any) -> dict[str, Any]:
    """All but rank 0 send 40 messages to it at once."""
    endpoint, count = rank.endpoint, 40
    buffers = np.zeros((rank.size * count, 1024), np.uint8)
    if rank.number == 0:
        received = [endpoint.irecv(each) for each in buffers[: (rank.size - 1) * count]]
        for request in received:
            endpoint.wait(request)
        return {"got": buffers[: len(received), 0].copy()}
    partner = endpoint.connect(*rank.place_of(0), timeout_ns=CONNECT_NS)
    buffers[:count] = rank.number
    for request in [endpoint.isend(each, partner) for each in buffers[:count]]:
        endpoint.wait(request)
    return {}


def cluster(work: Callable[[Any], Any], nodes: int, **nic: Any) -> ClusterSpec:
    return ClusterSpec(
        ranks=tuple(RankSpec(node, "own", function=work) for node in range(nodes)),
        nodes=nodes,
        nic=NicParameters(coalescing="disabled", **nic),
        host=HostParameters(event_ring_entries=256),
        mx=MxParameters(requests=64, unexpected_bytes=1 << 20, heap_bytes=1 << 22),
        wait=WaitParameters(strategy="block"),
    )


def total(result: ClusterResult, name: str) -> int:
    return sum(counted.get(name, 0) for counted in result.counters.values())


@pytest.mark.parametrize("network", ["direct", "switch", "fat-tree"])
def test_sixty_four_nodes_get_what_was_sent(network: str) -> None:
    result = Simulated().run(cluster(ring, 64, network=network, leaf_nodes=8, spine_switches=4))
    got = [int(result.samples[f"rank{number}"]["got"][0]) for number in range(64)]
    assert got == [(number - 1) % 64 for number in range(64)]
    assert total(result, "recv_messages") == 2 * 64
    assert total(result, "resent_messages") == 0
    # The last acknowledgements are still on their way when the run ends.
    arrived, sent = total(result, "rx_packets"), total(result, "tx_packets")
    passed = total(result, "switch_packets")
    if network == "direct":
        assert passed == 0
    elif network == "switch":
        assert arrived <= passed <= sent
    else:  # those to another leaf pass three switches
        assert arrived < passed < 3 * sent


@pytest.mark.parametrize("when_full", ["drop", "pause"])
def test_all_to_one_through_a_small_queue(when_full: str) -> None:
    options = {"switch_buffer_packets": 8, "switch_when_full": when_full}
    result = Simulated().run(cluster(shout, 6, network="switch", **options))
    got = result.samples["rank0"]["got"].tolist()
    assert sorted(got) == [number for number in range(1, 6) for _ in range(40)]
    dropped, paused = total(result, "switch_dropped"), total(result, "switch_paused")
    assert (dropped > 0, paused > 0) == (when_full == "drop", when_full == "pause")
    assert total(result, "tx_packets") >= total(result, "rx_packets") + dropped


def test_a_node_of_a_thousand_takes_less_than_a_megabyte_beside_its_heap() -> None:
    spec = cluster(ring, 1024, network="fat-tree", **SMALL_RINGS)
    spec = ClusterSpec(**{**_fields(spec), "host": HostParameters(event_ring_entries=64)})
    layout = node_layout(spec, Simulated().place(spec), 1023)
    # Its port's ring in the switch is as large as the one in the node.
    assert Node.size_bytes(layout) + layout.link_stride < 1_000_000


def _fields(spec: ClusterSpec) -> dict[str, Any]:
    names = ("ranks", "nodes", "nic", "mx", "wait")
    return {name: getattr(spec, name) for name in names}


def test_real_processes_have_no_switch() -> None:
    with pytest.raises(NotHereError, match="--engine simulated"):
        run(pingpong_pair(1, nic=NicParameters(network="switch")))


def test_a_generator_has_no_switch() -> None:
    with pytest.raises(InputError, match="direct"):
        generator_stream(nic=NicParameters(network="switch"))
