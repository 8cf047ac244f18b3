"""Messages between the ranks of one node, by shared memory and by the wire."""

from __future__ import annotations

from typing import Any

import pytest
from support.virtual_cluster import VirtualCluster, pattern

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.settings.mx import MxParameters

LENGTHS = [0, 1, 32, 33, 128, 129, 1452, 1453, 4096]


def neighbours(
    disable_shared: bool = False, mx: dict[str, Any] | None = None, **cluster: Any
) -> tuple[VirtualCluster, Endpoint, Endpoint, Partner]:
    """Two ranks of node 0, and the second as the partner of the first."""
    parameters = MxParameters(disable_shared=disable_shared, **(mx or {}))
    made = VirtualCluster(endpoints=2, **cluster)
    one, other = (made.open(0, index, parameters=parameters) for index in (0, 1))
    partner = made.connect(one, 0, 1)
    made.frames.clear()
    return made, one, other, partner


@pytest.mark.parametrize("ring", ["lock-free", "reset"])
@pytest.mark.parametrize("disable_shared", [False, True])
@pytest.mark.parametrize("expected", [True, False])
def test_both_paths_bring_the_same(expected: bool, disable_shared: bool, ring: str) -> None:
    cluster, one, other, partner = neighbours(disable_shared, event_ring=ring)
    buffers = [bytearray(length + 5) for length in LENGTHS]
    receives = []
    if expected:
        receives = [other.irecv(buffer, 7) for buffer in buffers]
    sends = [one.isend(pattern(n, i), partner, 7) for i, n in enumerate(LENGTHS)]
    if not expected:
        cluster.settle()
        receives = [other.irecv(buffer, 7) for buffer in buffers]
    for number, length in enumerate(LENGTHS):
        status = cluster.wait(other, receives[number])
        assert (status.code, status.length) == ("success", length)
        assert status.source is not None
        assert (status.source.node, status.source.endpoint) == (0, 0)
        assert buffers[number] == pattern(length, number) + bytes(5)
        assert cluster.wait(one, sends[number]).code == "success"
    cluster.advance(10**9)
    assert partner.unacked == 0
    assert bool(cluster.frames) == disable_shared
    counters = one.counters()
    names = ("shared_tiny", "shared_small", "send_tiny", "send_small")
    assert [counters[n] for n in names] == ([0, 0, 3, 2] if disable_shared else [3, 2, 0, 0])
    assert counters["resent_messages"] == 0


def test_a_rank_is_answered_after_many_refusals() -> None:
    cluster = VirtualCluster(endpoints=2)
    one = cluster.open(0, 0)
    # More than half of the numbers that connect requests have.
    for _ in range(200):
        assert cluster.wait(one, one.iconnect(0, 1)).code == "endpoint-closed"
    other = cluster.open(0, 1)
    # It knows our session before it sees a request of ours.
    cluster.connect(other, 0, 0)
    partner = cluster.connect(one, 0, 1)
    receive = other.irecv(bytearray(4), 7)
    one.isend(b"here", partner, 7)
    assert cluster.wait(other, receive).code == "success"


@pytest.mark.parametrize("entries", [16, 64])
def test_a_full_target_ring_delays_and_loses_nothing(entries: int) -> None:
    cluster, one, other, partner = neighbours(event_ring_entries=entries)
    count = 10 * entries
    buffers = [bytearray(4) for _ in range(count)]
    receives = [other.irecv(buffer, 1) for buffer in buffers]
    sends = [one.isend(i.to_bytes(4, "big"), partner, 1) for i in range(count)]
    assert one.counters()["shared_eventq_full"] > 0
    for send, receive in zip(sends, receives, strict=True):
        assert cluster.wait(one, send).code == "success"
        assert cluster.wait(other, receive).code == "success"
    assert [int.from_bytes(b, "big") for b in buffers] == list(range(count))
    assert one.counters()["resent_messages"] == 0


def test_a_full_target_holds_up_nobody_else() -> None:
    cluster = VirtualCluster(endpoints=3, event_ring_entries=16)
    one, full, free = (cluster.open(0, index) for index in range(3))
    far = cluster.open(1)
    to_full, to_free = cluster.connect(one, 0, 1), cluster.connect(one, 0, 2)
    to_far = cluster.connect(one, 1)
    cluster.endpoints.remove(full)  # it makes no passes any more
    for i in range(30):
        one.isend(i.to_bytes(4, "big"), to_full, 1)
    assert one.counters()["shared_eventq_full"] > 0
    for endpoint, partner in ((free, to_free), (far, to_far)):
        buffer = bytearray(3)
        receive = endpoint.irecv(buffer, 2)
        one.isend(b"yes", partner, 2)
        assert cluster.wait(endpoint, receive).code == "success"
        assert buffer == b"yes"
    assert one.next_timer_ns is not None
    cluster.endpoints.append(full)
    buffers = [bytearray(4) for _ in range(30)]
    for receive in [full.irecv(buffer, 1) for buffer in buffers]:
        assert cluster.wait(full, receive).code == "success"
    assert [int.from_bytes(b, "big") for b in buffers] == list(range(30))


@pytest.mark.parametrize("length", [0, 32, 128, 4096])
def test_what_lies_in_a_targets_ring_is_not_sent_again(length: int) -> None:
    """A rank may compute for longer than a resend waits."""
    cluster, one, other, partner = neighbours()
    cluster.endpoints.remove(other)
    assert cluster.wait(one, one.isend(pattern(length), partner, 1)).code == "success"
    cluster.advance(5 * 10**9)
    assert one.counters()["resent_messages"] == 0
    assert one.next_timer_ns is None
    cluster.endpoints.append(other)
    buffer = bytearray(length)
    assert cluster.wait(other, other.irecv(buffer, 1)).length == length
    assert buffer == pattern(length)
    cluster.advance(10**9)
    assert partner.unacked == 0
    assert other.counters()["recv_duplicate"] == 0


@pytest.mark.parametrize("disable_shared", [False, True])
def test_a_closed_target_ends_what_was_sent_to_it(disable_shared: bool) -> None:
    cluster, one, other, partner = neighbours(disable_shared, mx={"zombies_max": 0})
    cluster.close(other)
    sends = [one.isend(pattern(length), partner, 1) for length in (0, 100, 4096)]
    assert [cluster.wait(one, send).code for send in sends] == ["endpoint-closed"] * 3
    assert partner.session is None
    late = one.isend(b"", partner, 1)
    assert cluster.wait(one, late).code == "remote-endpoint-unreachable"
    connect = one.iconnect(0, 1)
    assert cluster.wait(one, connect).code == "endpoint-closed"


@pytest.mark.parametrize("disable_shared", [False, True])
def test_a_reopened_target_is_another_one(disable_shared: bool) -> None:
    cluster, one, other, partner = neighbours(disable_shared, mx={"zombies_max": 0})
    cluster.close(other)
    other = cluster.open(0, 1, parameters=MxParameters(disable_shared=disable_shared))
    send = one.isend(b"old", partner, 1)
    assert cluster.wait(one, send).code == "bad-session"
    partner = cluster.connect(one, 0, 1)
    buffer = bytearray(3)
    receive = other.irecv(buffer, 1)
    send = one.isend(b"new", partner, 1)
    assert cluster.wait(other, receive).code == "success"
    assert cluster.wait(one, send).code == "success"
    assert buffer == b"new"


def test_there_is_no_such_local_endpoint() -> None:
    cluster, one, _, _ = neighbours()
    assert cluster.wait(one, one.iconnect(0, 9)).code == "bad-endpoint"


def test_a_local_send_behind_many_that_wait_for_the_tx_ring_goes_at_once() -> None:
    """And those that wait arrive in order, when it goes on."""
    cluster, one, other, partner = neighbours(tx_ring_entries=16, event_ring_entries=64)
    far = cluster.open(1)
    remote = cluster.connect(one, 1)
    sent = [one.isend(bytes([number]), remote, number) for number in range(30)]
    near = one.isend(b"near", partner, 99)
    one.progress()
    into = bytearray(4)
    assert other.wait(other.irecv(into, 99), 0) is not None
    assert into == b"near"
    for number in range(30):
        got = bytearray(1)
        assert cluster.wait(far, far.irecv(got, number)).code == "success"
        assert got == bytes([number])
    assert all(cluster.wait(one, each).code == "success" for each in (*sent, near))
    assert one.counters()["resent_messages"] == 0
