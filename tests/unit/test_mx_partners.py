"""Connecting, refusing, dying and coming back."""

from __future__ import annotations

import random

import pytest
from support.packets import TinyPacket
from support.virtual_cluster import (
    MILLISECOND,
    FaultyWire,
    VirtualCluster,
    frame_type,
    pattern,
    perfect_wire,
)

from shrimpmx.errors import MxError
from shrimpmx.settings.mx import MxParameters


def nothing(frame: bytes) -> list[tuple[int, bytes]]:
    return []


def test_connecting_teaches_both_sides() -> None:
    cluster = VirtualCluster()
    one, other = cluster.open(0, session_id=1111), cluster.open(1, session_id=2222)
    partner = cluster.connect(one, 1)
    assert (partner.node, partner.endpoint, partner.session) == (1, 0, 2222)
    one.isend(b"hello", partner, 1)
    cluster.settle()
    status = other.iprobe(1)
    assert status is not None
    assert status.source is not None
    assert status.source.session == 1111
    # A partner may answer without connecting back.
    receive = one.irecv(None, 2)
    other.isend(None, status.source, 2)
    assert cluster.wait(one, receive).source is partner


def test_endpoints_of_a_process_are_introduced_without_packets() -> None:
    cluster = VirtualCluster(endpoints=64)
    one, other = cluster.open(0, 3), cluster.open(1, 63)
    partner = one.introduce(other)
    assert (partner.node, partner.endpoint, partner.session) == (1, 63, other.session)
    assert other.introduce(one).session == one.session
    assert one.introduce(other) is partner
    cluster.settle()
    assert cluster.frames == []
    sent, receive = one.isend(b"hello", partner, 1), other.irecv(bytearray(5), 1)
    assert cluster.wait(other, receive).source is other.introduce(one)
    assert cluster.wait(one, sent).code == "success"
    assert cluster.frames_of("connect") == []


def test_a_closed_endpoint_is_not_introduced() -> None:
    cluster = VirtualCluster()
    one, other = cluster.open(0), cluster.open(1)
    other.close()
    with pytest.raises(MxError, match="closed"):
        one.introduce(other)


def test_a_wrong_key_is_refused() -> None:
    cluster = VirtualCluster()
    one, _ = cluster.open(0), cluster.open(1, key=42)
    status = cluster.wait(one, one.iconnect(1, 0, 41))
    assert status.code == "bad-connection-key"
    assert cluster.connect(one, 1, key=42).session is not None


@pytest.mark.parametrize(
    ("endpoint", "code"), [(1, "endpoint-closed"), (9, "bad-endpoint"), (255, "bad-endpoint")]
)
def test_connecting_to_nobody_is_nacked(endpoint: int, code: str) -> None:
    cluster = VirtualCluster(endpoints=2)
    one = cluster.open(0)
    cluster.open(1)
    assert cluster.wait(one, one.iconnect(1, endpoint)).code == code
    assert one.counters()["nacks_received"] == 1


def test_a_connect_is_resent_until_it_is_answered() -> None:
    cluster = VirtualCluster()
    one, _ = cluster.open(0), cluster.open(1)
    cluster.wire = nothing
    request = one.iconnect(1, 0)
    cluster.advance(1200 * MILLISECOND)
    assert one.test(request) is None
    assert len(cluster.frames) == 3
    cluster.wire = perfect_wire
    assert cluster.wait(one, request).code == "success"


def test_a_connect_to_a_silent_node_ends_unreachable() -> None:
    cluster = VirtualCluster()
    one = cluster.open(0, parameters=MxParameters(resends_max=5))
    cluster.wire = nothing
    start_ns = cluster.now_ns
    assert cluster.wait(one, one.iconnect(1, 0)).code == "remote-endpoint-unreachable"
    assert cluster.now_ns - start_ns == 6 * 500 * MILLISECOND
    assert len(cluster.frames) == 6


def test_a_connect_can_be_cancelled() -> None:
    cluster = VirtualCluster()
    one, _ = cluster.open(0), cluster.open(1)
    request = one.iconnect(1, 0)
    assert one.cancel(request)
    status = one.test(request)
    assert status is not None
    assert status.code == "cancelled"
    cluster.settle()
    assert one.next_timer_ns is None


def test_both_may_connect_at_once() -> None:
    cluster = VirtualCluster()
    one, other = cluster.open(0), cluster.open(1)
    requests = [(one, one.iconnect(1, 0)), (other, other.iconnect(0, 0))]
    for endpoint, request in requests:
        status = cluster.wait(endpoint, request)
        assert status.code == "success"
        assert status.source is not None
        endpoint.isend(b"", status.source, 1)
    cluster.settle()
    assert one.iprobe(1) is not None
    assert other.iprobe(1) is not None


def test_a_partner_that_never_acks_is_dead_and_all_its_requests_fail() -> None:
    cluster = VirtualCluster()
    parameters = MxParameters(resends_max=3, zombies_max=1, throttle=3)
    one, _, partner = cluster.pair(parameters)
    cluster.wire = nothing
    sends = [one.isend(pattern(2000), partner, 1) for _ in range(6)]
    connect = one.iconnect(1, 0)
    cluster.advance(500 * MILLISECOND * 4)
    # The first was done when it was sent; it cannot be reported any more.
    codes = [status.code for send in sends if (status := one.test(send))]
    assert codes == ["success"] + ["remote-endpoint-unreachable"] * 5
    status = one.test(connect)
    assert status is not None
    assert status.code == "remote-endpoint-unreachable"
    assert one.counters()["partners_dead"] == 1
    assert one.next_timer_ns is None
    assert partner.session is None
    refused = one.test(one.isend(b"", partner, 1))
    assert refused is not None
    assert refused.code == "remote-endpoint-unreachable"


def test_a_dead_partner_that_lives_is_reconnected_under_a_new_session_counter() -> None:
    """What was in flight when one side gave up must not be taken for something new."""
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(MxParameters(resends_max=2))
    back = cluster.connect(other, 0)
    lost = 0

    def lose_one_third_message(frame: bytes) -> list[tuple[int, bytes]]:
        nonlocal lost
        lost += frame_type(frame) == "small"
        return [] if frame_type(frame) == "truc" or lost == 1 else perfect_wire(frame)

    cluster.wire = lose_one_third_message
    one.isend(bytes(50), partner, 100)  # lost; those behind it wait for it as early ones
    for number in range(3):
        one.isend(b"old", partner, number)
    cluster.settle()
    cluster.wire = nothing
    cluster.advance(2000 * MILLISECOND)
    assert one.counters()["partners_dead"] == 1
    cluster.wire = perfect_wire
    partner = cluster.connect(one, 1)
    cluster.frames.clear()
    for number in range(5):
        one.isend(b"new", partner, number)
        receive = bytearray(3)
        assert cluster.wait(other, other.irecv(receive, number)).code == "success"
        assert receive == b"new"
    numbers = [p.lib_seqnum for p in cluster.packets("tiny") if isinstance(p, TinyPacket)]
    assert numbers == [0x4000 + n for n in range(1, 6)]
    other.isend(b"back", back, 9)
    answer = bytearray(4)
    assert cluster.wait(one, one.irecv(answer, 9)).code == "success"
    assert answer == b"back"


def test_a_restarted_partner_gets_nothing_of_the_old_session() -> None:
    """Old packets are refused as bad session; the new session starts at 1."""
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    for _ in range(3):
        one.isend(b"", partner, 1)
    cluster.settle()
    cluster.close(other)
    held: list[bytes] = []

    def hold(frame: bytes) -> list[tuple[int, bytes]]:
        held.append(frame)
        return []

    cluster.wire = hold
    buffer = bytes(40_000)
    sends = [one.isend(buffer[:30_000], partner, 2) for _ in range(3)]
    cluster.settle()
    cluster.wire = perfect_wire
    other = cluster.open(1)
    back = cluster.connect(other, 0)
    assert one.counters()["partners_dead"] == 0
    assert partner.session == other.session
    assert partner.unacked == 0
    assert all(cluster.wait(one, send).code == "success" for send in sends)  # zombies
    for frame in held:  # the old session's packets arrive only now, and their nacks
        cluster.handlers[1].handle_frame(frame)
    cluster.settle()
    assert cluster.control.agent_counters(1)["drop_bad_session"] == len(held)
    cluster.frames.clear()
    for number in range(4):
        one.isend(bytes([number]), partner, number)
    other.isend(b"", back, 1)
    cluster.settle()
    numbers = [p.lib_seqnum for p in cluster.packets("tiny") if isinstance(p, TinyPacket)]
    # The restarted side expects 1; what it sends itself is told from before by the counter.
    assert sorted(numbers) == [1, 2, 3, 4, 0x4001]
    assert [other.iprobe(n) is not None for n in range(4)] == [True] * 4
    assert one.iprobe(1) is not None


def test_half_received_messages_end_when_their_sender_restarts() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    receive = other.irecv(bytearray(9000), 1)

    def lose_last(frame: bytes) -> list[tuple[int, bytes]]:
        return [] if frame[16] & 0x80 else perfect_wire(frame)

    cluster.wire = lose_last
    one.isend(pattern(9000), partner, 1)
    one.isend(pattern(9000), partner, 2)
    cluster.settle()
    assert other.iprobe(2) is not None
    cluster.close(one)
    cluster.wire = perfect_wire
    again = cluster.open(0)
    partner = cluster.connect(again, 1)
    status = other.test(receive)
    assert status is not None
    assert status.code == "remote-endpoint-unreachable"
    assert other.iprobe(2) is None
    again.isend(b"fresh", partner, 2)
    buffer = bytearray(5)
    assert cluster.wait(other, other.irecv(buffer, 2)).code == "success"
    assert buffer == b"fresh"


def test_a_delayed_connect_of_a_replaced_instance_is_ignored() -> None:
    cluster = VirtualCluster()
    one, other = cluster.open(0), cluster.open(1)
    cluster.connect(other, 0)
    (old_request,) = [f for f in cluster.frames_of("connect") if f[11] == 1]
    cluster.close(other)
    other = cluster.open(1)
    back = cluster.connect(other, 0)
    other.isend(b"", back, 1)
    cluster.settle()
    cluster.handlers[0].handle_frame(old_request)
    cluster.settle()
    assert one.counters()["recv_bad_session"] == 1
    other.isend(b"", back, 1)
    cluster.settle()
    for _ in range(2):
        status = one.test(one.irecv(None, 1))
        assert status is not None
        assert status.source is not None
        assert status.source.session == other.session


@pytest.mark.parametrize("reopen", [False, True])
def test_messages_to_a_closed_or_reopened_endpoint_are_nacked(reopen: bool) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(MxParameters(zombies_max=0))
    cluster.close(other)
    if reopen:
        cluster.open(1)
    send = one.isend(b"x", partner, 1)
    behind = one.isend(b"y", partner, 1)
    code = "bad-session" if reopen else "endpoint-closed"
    assert cluster.wait(one, send).code == code
    assert cluster.wait(one, behind).code == code
    assert partner.session is None
    assert one.next_timer_ns is None


def test_closing_ends_what_is_pending() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(MxParameters(zombies_max=1))
    done = one.isend(b"1", partner, 1)
    pending = [one.isend(b"2", partner, 1), one.irecv(bytearray(9), 1), one.iconnect(1, 0)]
    cluster.close(one)
    codes = [request.status.code for request in (done, *pending) if request.status]
    assert codes == ["success"] + ["endpoint-closed"] * 3
    assert one.test(done) is done.status
    assert one.next_timer_ns is None
    assert partner.session is None
    one.close()
    cluster.close(other)


def test_closing_sends_the_acks_that_are_owed() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    one.isend(b"", partner, 1)
    cluster.settle()
    assert partner.unacked == 1
    cluster.close(other)
    cluster.settle()
    assert partner.unacked == 0
    with pytest.raises(MxError, match="is closed"):
        other.progress()


@pytest.mark.parametrize("seed", range(10))
def test_restarts_under_faults_lose_no_message_of_the_new_session(seed: int) -> None:
    rng = random.Random(seed)
    cluster = VirtualCluster(seed=seed)
    cluster.wire = FaultyWire(rng, loss=0.1, duplicate=0.1, reorder=0.2, degree=5)
    receiver = cluster.open(0)
    for generation in range(4):
        sender = cluster.open(1)
        partner = cluster.connect(sender, 0)
        for number in range(20):
            sender.isend(pattern(number * 100, generation), partner, generation << 8 | number)
            cluster.step()
        for number in range(20 if generation == 3 else rng.randrange(20)):
            buffer = bytearray(2000)
            status = cluster.wait(receiver, receiver.irecv(buffer, generation << 8 | number))
            assert status.length == number * 100
            assert buffer[: number * 100] == pattern(number * 100, generation)
        cluster.close(sender)
