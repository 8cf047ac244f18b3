"""Exactly once and in order, whatever the wire does; acknowledgements and resends in time."""

from __future__ import annotations

import random

import pytest
from support.exchange import exchange
from support.packets import SmallPacket, TinyPacket, TrucPacket
from support.virtual_cluster import (
    MILLISECOND,
    FaultyWire,
    VirtualCluster,
    frame_type,
    pattern,
    perfect_wire,
)

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.settings.mx import MxParameters


@pytest.mark.parametrize("only", ["truc", "connect", "tiny", "small", "medium_frag"])
@pytest.mark.parametrize("fault", ["loss", "duplicate", "reorder 1", "reorder 3", "reorder 40"])
def test_every_fault_on_every_type_is_survived(only: str, fault: str) -> None:
    kind, _, degree = fault.partition(" ")
    cluster = VirtualCluster(seed=7)
    cluster.wire = FaultyWire(
        random.Random(6), **{kind: 0.5}, degree=int(degree or 3), only=(only,)
    )
    one, other, partner = cluster.pair()
    exchange(cluster, one, other, partner)
    if kind == "loss" and only not in ("truc", "connect"):
        assert one.counters()["resent_messages"] > 0
    if kind == "duplicate" and only not in ("truc", "connect"):
        assert other.counters()["recv_duplicate"] > 0
    if fault == "reorder 40" and only not in ("truc", "connect"):
        assert other.counters()["recv_early"] > 0


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("event_ring", ["lock-free", "reset"])
def test_all_faults_at_once_both_ways(seed: int, event_ring: str) -> None:
    cluster = VirtualCluster(seed=seed, event_ring=event_ring, event_ring_entries=64)
    cluster.wire = FaultyWire(
        random.Random(seed), loss=0.1, duplicate=0.1, reorder=0.2, degree=1 + seed * 4
    )
    one, other, partner = cluster.pair()
    back = cluster.connect(other, 0)
    exchange(cluster, one, other, partner, posted=1 + seed)
    exchange(cluster, other, one, back, posted=1 + 2 * seed)


@pytest.mark.parametrize("first_seqnum", [1, 0x3FFE, 0x3FFF, 0])
def test_sequence_numbers_wrap_at_14_bits(first_seqnum: int) -> None:
    cluster = VirtualCluster()
    cluster.wire = FaultyWire(random.Random(3), loss=0.1, duplicate=0.1, reorder=0.2, degree=9)
    one, other, partner = cluster.pair(first_seqnum=first_seqnum)
    exchange(cluster, one, other, partner)
    numbers = [p.lib_seqnum for p in cluster.packets("tiny") if isinstance(p, TinyPacket)]
    assert numbers[0] == first_seqnum
    assert all(number < 0x4000 for number in numbers)


def test_a_full_event_ring_is_repaired_by_resends() -> None:
    """Unexpected ring full, packet lost, message delivered after about half a second."""
    cluster = VirtualCluster(event_ring_entries=16)
    one, other, partner = cluster.pair()
    cluster.endpoints.remove(other)  # the receiver computes and does not look
    for number in range(40):
        one.isend(pattern(100, number), partner, number)
    cluster.settle()
    # The slot of the connect was consumed but not handed back yet: that goes by quarters.
    assert cluster.control.agent_counters(1)["unexp_eventq_full"] == 40 - 15
    cluster.endpoints.append(other)
    sent_ns = cluster.now_ns
    for number in range(40):
        buffer = bytearray(100)
        assert cluster.wait(other, other.irecv(buffer, number)).code == "success"
        assert buffer == pattern(100, number)
    assert 500 * MILLISECOND <= cluster.now_ns - sent_ns < 1100 * MILLISECOND


# -- acknowledgements ----------------------------------------------------------


def acks(cluster: VirtualCluster) -> list[TrucPacket]:
    return [packet for packet in cluster.packets("truc") if isinstance(packet, TrucPacket)]


@pytest.mark.parametrize(("count", "at_once"), [(1, 0), (3, 0), (4, 1), (9, 1)])
def test_four_unacked_messages_force_an_ack_at_the_end_of_a_pass(count: int, at_once: int) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    cluster.endpoints.remove(other)
    for _ in range(count):
        one.isend(None, partner, 1)
    cluster.settle()
    other.progress()  # one pass takes them all
    cluster.carry()
    assert len(acks(cluster)) == at_once
    assert [packet.lib_seqnum for packet in acks(cluster)] == [1 + count] * at_once
    assert other.counters()["acks_immediate"] == at_once


def test_a_lone_message_is_acked_after_16_ms() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    one.isend(None, partner, 1)
    cluster.settle()
    received_ns = cluster.now_ns
    assert other.next_timer_ns == received_ns + 16 * MILLISECOND
    cluster.advance(16 * MILLISECOND - 1)
    assert acks(cluster) == []
    assert partner.unacked == 1
    cluster.advance(1)
    cluster.settle()
    assert len(acks(cluster)) == 1
    assert partner.unacked == 0
    assert other.counters()["acks_delayed"] == 1
    assert one.next_timer_ns is None
    assert other.next_timer_ns is None


def test_a_message_the_other_way_carries_the_ack() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    back = cluster.connect(other, 0)
    one.isend(None, partner, 1)
    cluster.settle()
    cluster.frames.clear()
    other.isend(bytes(40), back, 1)
    cluster.settle()
    assert partner.unacked == 0
    (packet,) = cluster.packets("small")
    assert isinstance(packet, SmallPacket)
    assert packet.lib_piggyack == 2
    assert other.counters()["acks_piggybacked"] == 1
    cluster.advance(15 * MILLISECOND)
    assert acks(cluster) == []


def test_a_duplicate_of_the_last_message_is_acked_at_once_an_older_one_later() -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair()
    for _ in range(3):
        one.isend(None, partner, 1)
    cluster.advance(17 * MILLISECOND)
    first, _, last = cluster.frames_of("tiny")
    cluster.frames.clear()
    cluster.handlers[1].handle_frame(first)
    cluster.settle()
    assert acks(cluster) == []
    cluster.handlers[1].handle_frame(last)
    cluster.settle()
    assert [packet.lib_seqnum for packet in acks(cluster)] == [4]


def test_acks_that_were_overtaken_or_that_lie_are_ignored() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    late: list[bytes] = []

    def hold_first_ack(frame: bytes) -> list[tuple[int, bytes]]:
        if frame_type(frame) == "truc" and not late:
            late.append(frame)
            return []
        return perfect_wire(frame)

    cluster.wire = hold_first_ack
    for _ in range(2):
        for _ in range(4):
            one.isend(None, partner, 1)
        cluster.settle()
    assert partner.unacked == 0
    one.isend(None, partner, 1)
    cluster.handlers[0].handle_frame(late[0])
    lie = bytearray(late[0])
    lie[16 + 14 : 16 + 16] = (5000).to_bytes(2, "big")  # lib_seqnum, never sent
    lie[16 + 20 : 16 + 24] = (99).to_bytes(4, "big")  # acknum
    cluster.handlers[0].handle_frame(bytes(lie))
    one.progress()
    assert partner.unacked == 1
    assert one.counters()["recv_stale_ack"] == 2
    assert other.counters()["recv_duplicate"] == 0


# -- resends -------------------------------------------------------------------


@pytest.mark.parametrize(("length", "packets"), [(10, 1), (100, 1), (10_000, 7)])
def test_an_unanswered_message_is_resent_whole_every_half_second(length: int, packets: int) -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair()
    cluster.wire = lambda frame: []
    one.isend(pattern(length), partner, 1)
    cluster.settle()
    for times in range(1, 4):
        assert one.next_timer_ns == cluster.now_ns + 500 * MILLISECOND
        cluster.advance(500 * MILLISECOND - 1)
        assert len(cluster.frames) == packets * times
        cluster.advance(1)
        assert len(cluster.frames) == packets * (times + 1)
    assert cluster.frames[:packets] == cluster.frames[-packets:]  # marks too
    assert one.counters()["resent_messages"] == 3


def test_only_the_missing_message_holds_back_those_after_it() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    tiny = 0

    def lose_third(frame: bytes) -> list[tuple[int, bytes]]:
        nonlocal tiny
        tiny += frame_type(frame) == "tiny"
        return [] if tiny == 3 and frame_type(frame) == "tiny" else perfect_wire(frame)

    cluster.wire = lose_third
    receives = [other.irecv(None, 1) for _ in range(6)]
    for _ in range(6):
        one.isend(None, partner, 1)
    cluster.settle()
    assert [other.test(request) is not None for request in receives] == [True] * 2 + [False] * 4
    assert other.counters()["recv_early"] == 3
    cluster.wire = perfect_wire
    cluster.advance(501 * MILLISECOND)
    assert all(other.test(request) is not None for request in receives[2:])


def test_messages_beyond_the_early_window_are_dropped_and_come_again() -> None:
    cluster = VirtualCluster(tx_ring_entries=1024, event_ring_entries=1024)
    one, other, partner = cluster.pair(MxParameters(early_window=10))
    first = True

    def lose_first(frame: bytes) -> list[tuple[int, bytes]]:
        nonlocal first
        lose, first = first, False
        return [] if lose else perfect_wire(frame)

    cluster.wire = lose_first
    for number in range(30):
        one.isend(bytes([number]), partner, number)
    cluster.settle()
    counters = other.counters()
    assert counters["recv_early"] == 10
    assert counters["recv_out_of_window"] == 19
    cluster.advance(600 * MILLISECOND)
    for number in range(30):
        buffer = bytearray(1)
        status = other.test(other.irecv(buffer, 0, 0))
        assert status is not None
        assert (status.match, buffer[0]) == (number, number)


def test_sends_complete_before_their_ack_up_to_the_zombie_limit() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(MxParameters(zombies_max=3, resend_delay_ns=1_000_000))
    cluster.wire = lambda frame: []
    buffer = bytearray(pattern(5000))
    sends = [one.isend(buffer, partner, 1) for _ in range(5)]
    statuses = [one.test(request) for request in sends]
    assert [status is not None for status in statuses] == [True] * 3 + [False] * 2
    cluster.settle()
    sends[3:] = [one.isend(b"", partner, 2), *sends[3:]]
    # A zombie's data is the library's own: what the user writes now is not resent.
    del sends[:3]
    cluster.wire = perfect_wire
    cluster.advance(2 * MILLISECOND)
    assert all(cluster.wait(one, request).code == "success" for request in sends)
    received = bytearray(5000)
    for _ in range(5):
        assert cluster.wait(other, other.irecv(received, 1)).code == "success"
        assert received == pattern(5000)
    assert one.counters()["zombies"] == 3


def test_a_zombie_is_resent_as_it_was() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    cluster.wire = lambda frame: []
    for length in (30, 120, 9000):
        buffer = bytearray(pattern(length))
        assert one.test(one.isend(buffer, partner, length)) is not None
        buffer[:] = bytes(length)
    cluster.settle()
    cluster.wire = perfect_wire
    cluster.advance(501 * MILLISECOND)
    for length in (30, 120, 9000):
        received = bytearray(length)
        assert other.test(other.irecv(received, length)) is not None
        assert received == pattern(length)


def test_the_throttle_limits_what_is_in_flight_and_keeps_the_order() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(MxParameters(throttle=5))
    cluster.wire = lambda frame: []
    sends = [one.isend(bytes([n]), partner, n) for n in range(17)]
    cluster.settle()
    assert partner.unacked == 5
    assert len(cluster.frames) == 5
    assert [one.test(send) is not None for send in sends] == [True] * 5 + [False] * 12
    cluster.wire = perfect_wire
    for number in range(17):
        buffer = bytearray(1)
        assert cluster.wait(other, other.irecv(buffer, 0, 0)).match == number
        assert partner.unacked <= 5
    for send in sends[5:]:
        assert cluster.wait(one, send).code == "success"


def test_a_full_tx_ring_delays_but_loses_nothing() -> None:
    cluster = VirtualCluster(tx_ring_entries=16)
    one, other, partner = cluster.pair()
    sends = [one.isend(pattern(12_000, n), partner, n) for n in range(8)]
    assert one.counters()["send_no_tx_slot"] > 0
    assert one.next_timer_ns is not None
    for number, send in enumerate(sends):
        buffer = bytearray(12_000)
        assert cluster.wait(other, other.irecv(buffer, number)).code == "success"
        assert buffer == pattern(12_000, number)
        assert cluster.wait(one, send).code == "success"
    assert one.counters()["resent_messages"] == 0


def timer_of(endpoint: Endpoint) -> int:
    timer_ns = endpoint.next_timer_ns
    assert timer_ns is not None
    return timer_ns


def test_what_is_due_while_the_tx_ring_is_full_is_tried_again_later() -> None:
    """Never at once: a wait for a timer of the past would neither sleep nor yield."""
    cluster = VirtualCluster(nodes=3, tx_ring_entries=16)
    one, other, partner = cluster.pair()
    cluster.open(2)
    third = cluster.connect(other, 2)
    one.isend(b"1", partner, 1)
    cluster.settle()
    for number in range(16):
        other.isend(b"1", third, number)
    assert other.counters()["send_no_tx_slot"] == 0
    for _ in range(3):  # the acknowledgement, then resends
        cluster.control.set_virtual_ns(timer_of(other))
        other.progress()
        assert timer_of(other) > cluster.now_ns
    cluster.settle()
    assert partner.unacked == 0


def test_damaged_packets_never_break_the_library() -> None:
    """Without a frame check a flipped bit may do anything but crash or block the library."""
    rng = random.Random(11)
    cluster = VirtualCluster(seed=3)
    one, other, partner = cluster.pair()

    def flip(frame: bytes) -> list[tuple[int, bytes]]:
        damaged = bytearray(frame)
        bit = rng.randrange(16 * 8, len(frame) * 8)
        damaged[bit // 8] ^= 1 << bit % 8
        return [(1_000, frame), (1_000, bytes(damaged))]

    cluster.wire = flip
    receives = [other.irecv(bytearray(300), 0, 0) for _ in range(100)]
    for number in range(200):
        one.isend(pattern(number * 17 % 4000, number), partner, number)
        cluster.step()
    cluster.advance(3_000 * MILLISECOND)
    assert sum(other.test(request) is not None for request in receives) > 0
    cluster.close(one)
    cluster.close(other)
