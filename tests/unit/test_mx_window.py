"""What may be in flight to a remote partner: events of eager messages, and pulls."""

from __future__ import annotations

import pytest
from support.virtual_cluster import (
    MILLISECOND,
    VirtualCluster,
    frame_type,
    pattern,
    perfect_wire,
)

from shrimpmx.settings.mx import MxParameters

LENGTH, FRAGMENTS = 12_000, 9
COUNT = 40
UNREACHABLE = "remote-endpoint-unreachable"


@pytest.mark.parametrize(("window", "overrun"), [(0, True), (32, False), (1, False)])
def test_a_window_keeps_a_burst_within_the_event_ring(window: int, overrun: bool) -> None:
    cluster = VirtualCluster(event_ring_entries=64, tx_ring_entries=1024)
    one, other, partner = cluster.pair(MxParameters(send_window=window))
    start_ns = cluster.now_ns
    sends = [one.isend(pattern(LENGTH, n), partner, n) for n in range(COUNT)]
    cluster.settle()
    buffers = [bytearray(LENGTH) for _ in sends]
    receives = [other.irecv(buffer, n) for n, buffer in enumerate(buffers)]
    for number, receive in enumerate(receives):
        assert cluster.wait(other, receive).code == "success"
        assert buffers[number] == pattern(LENGTH, number)
    for send in sends:
        assert cluster.wait(one, send).code == "success"
    resent = one.counters()["resent_messages"]
    assert (resent > 0) is overrun
    # Nor did anything wait for a delayed acknowledgement.
    assert overrun or cluster.now_ns - start_ns < 16 * MILLISECOND


def test_a_full_window_lets_go_what_makes_the_partner_acknowledge() -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair(MxParameters(send_window=2 * FRAGMENTS, notacked_max=6))
    cluster.wire = lambda frame: []
    for number in range(COUNT):
        one.isend(bytes(LENGTH), partner, number)
    cluster.settle()
    assert partner.unacked == 6
    assert len(cluster.frames) == 6 * FRAGMENTS


def test_a_window_counts_each_message_for_what_it_takes() -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair(MxParameters(send_window=20, notacked_max=1))
    cluster.wire = lambda frame: []
    # 1 + 9 + 1 + 9: tiny, medium, large, medium. Full now.
    for number, length in enumerate((8, LENGTH, 100_000, LENGTH, 8, 8)):
        one.isend(bytes(length), partner, number)
    cluster.settle()
    assert partner.unacked == 4


def test_the_window_is_open_again_for_a_partner_that_was_given_up() -> None:
    cluster = VirtualCluster()
    parameters = MxParameters(send_window=5, notacked_max=1, resends_max=1)
    one, other, partner = cluster.pair(parameters)
    cluster.wire = lambda frame: []
    lost = [one.isend(bytes(LENGTH), partner, number) for number in range(3)]
    assert [cluster.wait(one, send).code for send in lost[1:]] == [UNREACHABLE] * 2
    cluster.wire = perfect_wire
    partner = cluster.connect(one, 1)
    buffer = bytearray(LENGTH)
    one.isend(pattern(LENGTH), partner, 7)
    assert cluster.wait(other, other.irecv(buffer, 7)).code == "success"
    assert buffer == pattern(LENGTH)


def test_so_many_pulls_run_at_once() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(MxParameters(pulls_max=2))
    contents = [pattern(4096, n) * 74 for n in range(7)]
    buffers = [bytearray(len(content)) for content in contents]
    for number, content in enumerate(contents):
        one.isend(content, partner, number)
    receives = [other.irecv(buffer, n) for n, buffer in enumerate(buffers)]
    ended = 0
    while ended < len(receives):
        cluster.settle()
        other.progress()
        ended = sum(other.test(receive) is not None for receive in receives)
        assert other.counters()["pulls_started"] - ended <= 2
    assert other.counters()["pulls_waited"] == 5
    assert buffers == contents


def test_what_the_limit_of_pulls_holds_back_holds_up_no_local_message() -> None:
    parameters = MxParameters(pulls_max=1)
    cluster = VirtualCluster(endpoints=2)
    one, other, partner = cluster.pair(parameters)
    beside = cluster.open(1, 1, parameters=parameters)
    local = cluster.connect(beside, 1, 0)
    cluster.wire = lambda frame: [] if frame_type(frame) == "pull_reply" else perfect_wire(frame)
    content = pattern(4096) * 74
    for number in range(3):
        one.isend(content, partner, number)
    remote = [other.irecv(bytearray(len(content)), number) for number in range(3)]
    cluster.settle()
    assert other.counters()["pulls_started"] == 1
    beside.isend(content, local, 7)
    buffer = bytearray(len(content))
    assert cluster.wait(other, other.irecv(buffer, 7)).code == "success"
    assert buffer == content
    assert [other.test(receive) for receive in remote] == [None] * 3
