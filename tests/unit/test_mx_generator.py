"""A rank receives the traffic generator's stream and its acknowledgements move the window."""

from __future__ import annotations

import pytest
from support.agents import make_generator
from support.virtual_cluster import NicCluster

from shrimpmx.link.rings import ring_links
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.nic import NicParameters

COUNT = 1000


@pytest.mark.parametrize("size", [0, 32, 128])
@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_a_rank_receives_the_whole_stream(size: int, loss: float) -> None:
    parameters = NicParameters(coalescing="stream")
    cluster = NicCluster(parameters)
    generator = make_generator(
        cluster.nodes[1],
        *ring_links(cluster.nodes, 1, parameters, LinkFaults(loss=loss) if loss else None),
        size=size,
        count=COUNT,
        window=64,
        match=5,
    )
    cluster.nics[1] = generator  # type: ignore[call-overload]
    receiver = cluster.open(0)
    receives = [receiver.irecv(bytearray(size), 5) for _ in range(COUNT)]
    cluster.connect(receiver, 1)
    for request in receives:
        status = cluster.wait(receiver, request)
        assert (status.code, status.length) == ("success", size)
    cluster.until(lambda: generator.acked_count == COUNT)
    assert receiver.iprobe(5) is None
    counters = receiver.counters()
    assert counters["recv_messages"] == COUNT
    assert counters["pool_grown"] == 0
    if not loss:
        assert counters["recv_duplicate"] == 0
        assert counters["send_liback"] < COUNT / 4
