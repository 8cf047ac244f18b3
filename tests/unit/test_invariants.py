"""What holds whatever is sent: the length of frames, and interrupts no more than packets.

docs/testing.md lists the protocol's invariants and the files that test each.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from support.packets import FRAME_MIN_BYTES
from support.virtual_cluster import NicCluster, frame_type, pattern

from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import COALESCING_NAMES
from shrimpmx.shared.node import peek_frames


class Watched(NicCluster):
    """Notes the lengths of the frames that lie in rx rings after each step."""

    lengths: defaultdict[str, set[int]]

    def carry(self) -> int:
        moved = super().carry()
        for node in self.nodes:
            for _, frame in peek_frames(node, "rx", 0):
                self.lengths[frame_type(frame)].add(len(frame))
        return moved


def test_every_frame_that_arrives_has_at_least_60_bytes() -> None:
    cluster = Watched(NicParameters(coalescing="timeout"))
    cluster.lengths = defaultdict(set)
    one, other, partner = cluster.pair()
    for size in (0, 33, 130, 40_000):
        receive = other.irecv(bytearray(40_000), 5)
        one.isend(pattern(size), partner, 5)
        assert cluster.wait(other, receive).length == size
    cluster.settle()
    sent = {"connect", "tiny", "small", "medium_frag", "rndv", "pull_request", "pull_reply"}
    assert sent <= set(cluster.lengths)
    assert min(map(min, cluster.lengths.values())) == FRAME_MIN_BYTES


# Under these a packet that comes after a pause raises at once.
AT_ONCE = ("disabled", "adaptive", "marks-adaptive", "napi-defer", "irq-suspend")


@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
def test_interrupts_never_outnumber_packets(coalescing: str) -> None:
    cluster = NicCluster(NicParameters(coalescing=coalescing))
    one, other, partner = cluster.pair()
    receives = [other.irecv(bytearray(300_000), 1) for _ in range(20)]
    for number in range(20):
        one.isend(pattern(30_000 * (number % 3), number), partner, 1)
    for receive in receives:
        assert cluster.wait(other, receive).code == "success"
    for node in (0, 1):
        counters = cluster.nic_counters(node)
        assert counters["irq_raised"] <= counters["rx_packets"]
        if coalescing not in AT_ONCE:
            assert counters["irq_raised"] < counters["rx_packets"]
        # What was deferred has been reported by the time all is quiet.
        cluster.settle()
        assert cluster.nodes[node].ring_depths()["rx", 0] == 0
