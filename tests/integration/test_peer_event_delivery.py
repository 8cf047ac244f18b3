"""omx_event_delivery_loopback: senders on one core of a node, receivers on another.

Each sender streams to a receiver of its own by shared memory. Every message arrives in order
(the stream checks), and neither NIC nor handler takes part.
"""

from __future__ import annotations

import pytest
from support import resends
from support.clusters import on_both_engines, run

from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.host import WaitParameters

PAIRS, COUNT = 3, 2000
SENDERS, RECEIVERS = 0, 1  # cores


@pytest.mark.nightly("each size and ring on each engine", but=4)
@on_both_engines
@pytest.mark.parametrize("event_ring", ["lock-free", "reset"])
@pytest.mark.parametrize(("size_bytes", "kind"), [(0, "tiny"), (128, "small"), (9000, "rndv")])
def test_events_are_delivered_to_each_receiver(size_bytes: int, kind: str, event_ring: str) -> None:
    def rank(core: int, peer: int) -> RankSpec:
        options = {
            "peer": peer,
            "size_bytes": size_bytes,
            "iterations": COUNT,
            "warmup": 0,
            "window": 64,
        }
        return RankSpec(0, "stream", core, options)

    senders = tuple(rank(SENDERS, PAIRS + pair) for pair in range(PAIRS))
    receivers = tuple(rank(RECEIVERS, pair) for pair in range(PAIRS))
    result = run(
        ClusterSpec(
            ranks=senders + receivers,
            nodes=1,
            host=resends.HOST.model_copy(update={"cores": 2, "event_ring": event_ring}),
            mx=resends.MX,
            wait=WaitParameters(strategy="block"),
        )
    )
    for pair in range(PAIRS):
        sender = result.counters[f"rank{pair}"]
        receiver = result.counters[f"rank{PAIRS + pair}"]
        assert sender["sent_shared"] == receiver["recv_messages"] == COUNT
        assert sender[f"shared_{kind}"] == COUNT
        assert receiver["recv_duplicate"] == 0
    assert result.counters["node0.nic"]["rx_packets"] == 0
    assert [sum(vectors) for vectors in result.interrupts[0]] == [0, 0]
