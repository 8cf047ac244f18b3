"""Eager messages: packets, marks, data, matching, truncation, cancel and probe."""

from __future__ import annotations

import mmap

import pytest
from support.virtual_cluster import (
    VirtualCluster,
    frame_type,
    is_marked,
    pattern,
)

from shrimpmx.errors import InputError, MxError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.settings.mx import MxParameters

# Bytes, packets at MTU 1500 and at MTU 9000 (Open-MX: 1452 or 8192 bytes per fragment).
GOLDEN = [
    (0, 1, 1), (32, 1, 1), (33, 1, 1), (128, 1, 1), (129, 1, 1), (1452, 1, 1), (1453, 2, 1),
    (4096, 3, 1), (8192, 6, 1), (8193, 6, 2), (16384, 12, 2), (32768, 23, 4),
]  # fmt: skip
ANY = 0


def class_of(length: int) -> str:
    return "tiny" if length <= 32 else "small" if length <= 128 else "medium_frag"


@pytest.mark.parametrize("mtu", [1500, 9000])
@pytest.mark.parametrize(("length", "at_1500", "at_9000"), GOLDEN)
def test_packets_and_marks_of_a_message(length: int, at_1500: int, at_9000: int, mtu: int) -> None:
    cluster = VirtualCluster(mtu=mtu)
    one, other, partner = cluster.pair()
    received = bytearray(length)
    receive = other.irecv(received, 7)
    sent = cluster.wait(one, one.isend(pattern(length), partner, 7))
    status = cluster.wait(other, receive)
    frames = cluster.frames_of("tiny", "small", "medium_frag")
    assert len(frames) == (at_1500 if mtu == 1500 else at_9000)
    assert {frame_type(frame) for frame in frames} == {class_of(length)}
    # Exactly the last fragment is latency-sensitive (coalescing paper, III-B).
    assert [is_marked(frame) for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert received == pattern(length)
    assert (sent.code, sent.length, sent.transferred) == ("success", length, length)
    assert (status.code, status.match, status.transferred) == ("success", 7, length)
    assert status.source is not None
    assert status.source.node == 0


def test_connects_and_acks_are_never_marked() -> None:
    cluster = VirtualCluster()
    one, other = cluster.open(0), cluster.open(1)
    partner = cluster.connect(one, 1)
    for _ in range(4):
        other.irecv(None, 1)
        one.isend(None, partner, 1)
    cluster.settle()
    rest = cluster.frames_of("connect", "truc")
    assert {frame_type(frame) for frame in rest} == {"connect", "truc"}
    assert not any(is_marked(frame) for frame in rest)


@pytest.mark.parametrize("length", [0, 32, 128, 129, 1452, 4096, 32768])
def test_unexpected_messages_are_kept_until_received(length: int) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    assert other.iprobe(3) is None
    one.isend(pattern(length), partner, 3)
    cluster.settle()
    found = other.iprobe(3)
    assert found is not None
    assert (found.code, found.length, found.match, found.transferred) == ("success", length, 3, 0)
    assert other.iprobe(4) is None
    received = bytearray(length)
    status = other.test(other.irecv(received, 3))
    assert status is not None
    assert status.transferred == length
    assert received == pattern(length)
    assert other.iprobe(3) is None


def test_an_unexpected_medium_that_is_half_there_goes_on_into_the_users_buffer() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    held: list[bytes] = []
    fragments = 0

    def hold_every_other(frame: bytes) -> list[tuple[int, bytes]]:
        nonlocal fragments
        if frame_type(frame) == "medium_frag":
            fragments += 1
            if fragments % 2:
                held.append(frame)
                return []
        return [(1_000, frame)]

    cluster.wire = hold_every_other
    one.isend(pattern(16384), partner, 3)
    cluster.settle()
    assert len(held) == 6
    assert other.iprobe(3) is not None
    received = bytearray(16384)
    receive = other.irecv(received, 3)
    assert other.test(receive) is None
    for frame in held:
        cluster.handlers[1].handle_frame(frame)
    status = other.test(receive)
    assert status is not None
    assert status.transferred == 16384
    assert received == pattern(16384)


def test_receives_match_in_the_order_they_were_posted() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    buffers = [bytearray(4) for _ in range(4)]
    any_of_low = other.irecv(buffers[0], 0x10, 0xF0)
    exact = other.irecv(buffers[1], 0x12)
    anything = other.irecv(buffers[2], 0, ANY)
    later = other.irecv(buffers[3], 0x12)
    for number, match in enumerate([0x12, 0x25, 0x12, 0x12]):
        one.isend(bytes([number] * 4), partner, match)
    cluster.settle()
    statuses = [other.test(request) for request in (any_of_low, anything, exact, later)]
    assert [status.match for status in statuses if status] == [0x12, 0x25, 0x12, 0x12]
    assert [bytes(buffers[i])[0] for i in (0, 2, 1, 3)] == [0, 1, 2, 3]


def test_unexpected_messages_are_found_in_the_order_they_came() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    for number in range(6):
        one.isend(bytes([number]), partner, number % 2)
    cluster.settle()
    taken = []
    for match, mask in [(1, 1), (0, ANY), (1, 1), (0, 1), (0, ANY), (0, ANY)]:
        buffer = bytearray(1)
        assert other.test(other.irecv(buffer, match, mask)) is not None
        taken.append(buffer[0])
    assert taken == [1, 0, 3, 2, 4, 5]


def test_match_bits_outside_the_mask_are_an_error() -> None:
    cluster = VirtualCluster()
    one, _, _ = cluster.pair()
    for call in (lambda: one.irecv(None, 0x11, 0xF0), lambda: one.iprobe(1, 0)):
        with pytest.raises(MxError, match="outside the mask") as caught:
            call()
        assert caught.value.status == "bad-match-mask"


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("length", [10, 120, 20_000])
def test_a_short_receive_is_truncated_and_nothing_beyond_it_is_touched(
    length: int, early: bool
) -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    whole = bytearray(b"\xfd" * length)
    half = memoryview(whole)[: length // 2]
    if early:
        receive = other.irecv(half, 1)
    sent = cluster.wait(one, one.isend(pattern(length), partner, 1))
    cluster.settle()
    if not early:
        receive = other.irecv(half, 1)
    status = cluster.wait(other, receive)
    assert (status.code, status.length, status.transferred) == ("truncated", length, length // 2)
    assert whole == pattern(length)[: length // 2] + b"\xfd" * (length - length // 2)
    assert sent.code == "success"  # an eager sender is not told
    assert other.counters()["truncated"] == 1


def test_cancel_takes_back_only_what_has_not_matched() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    first, second = other.irecv(bytearray(4), 1), other.irecv(bytearray(4), 1)
    assert other.cancel(first)
    one.isend(b"abcd", partner, 1)
    cluster.settle()
    assert not other.cancel(second)
    cancelled = other.test(first)
    assert cancelled is not None
    assert (cancelled.code, cancelled.source, cancelled.transferred) == ("cancelled", None, 0)
    status = other.test(second)
    assert status is not None
    assert status.code == "success"
    assert not other.cancel(second)
    send = one.isend(b"x", partner, 1)
    assert not one.cancel(send)


def test_a_buffer_belongs_to_its_request_until_it_is_collected() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    buffer = bytearray(8)
    receive = other.irecv(buffer, 1)
    with pytest.raises(BufferError):
        buffer.append(0)
    one.isend(bytes(8), partner, 1)
    cluster.wait(other, receive)
    buffer.append(0)
    with pytest.raises((BufferError, TypeError)):
        other.irecv(b"not writable", 1)
    other.irecv(buffer, 1)
    cluster.close(other)
    buffer.append(0)


def test_calls_that_cannot_work_say_so() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    with pytest.raises(InputError, match="another endpoint"):
        other.isend(b"", partner, 0)
    with pytest.raises(InputError, match="nodes are 0 to 1"):
        one.iconnect(2, 0)
    with pytest.raises(MxError, match="open already"):
        cluster.open(0)
    with pytest.raises(InputError, match="virtual clock"):
        one.wait(one.irecv(None, 1))
    cluster.close(one)
    with pytest.raises(MxError, match="is closed"):
        one.irecv(None, 0)


def test_a_rank_can_send_to_itself_and_to_its_node() -> None:
    cluster = VirtualCluster(nodes=1, endpoints=2)
    one, other = cluster.open(0, 0), cluster.open(0, 1)
    itself = cluster.connect(one, 0, 0)
    neighbour = cluster.connect(one, 0, 1)
    for length in (5, 100, 5000):
        mine, theirs = bytearray(length), bytearray(length)
        receives = [(one, one.irecv(mine, 1)), (other, other.irecv(theirs, 1))]
        sends = [one.isend(pattern(length), partner, 1) for partner in (itself, neighbour)]
        for endpoint, request in receives:
            assert cluster.wait(endpoint, request).code == "success"
        assert all(cluster.wait(one, send).code == "success" for send in sends)
        assert mine == theirs == pattern(length)


def test_many_messages_in_flight_need_nothing_from_the_system() -> None:
    """No allocation on a message's way: the pools made at open suffice."""
    cluster = VirtualCluster(tx_ring_entries=1024)
    one, other, partner = cluster.pair()
    for length in (0, 100, 3000):
        for _ in range(100):
            one.isend(pattern(length), partner, 1)
        cluster.settle()
        for _ in range(100):
            assert other.test(other.irecv(bytearray(length), 1)) is not None
    cluster.advance(20_000_000)
    assert partner.unacked == 0
    assert one.counters()["pool_grown"] == other.counters()["pool_grown"] == 0


def test_pools_that_are_too_small_grow_and_count_it() -> None:
    parameters = MxParameters(requests=16, unexpected_bytes=65536)
    cluster = VirtualCluster(tx_ring_entries=1024)
    one, other, partner = cluster.pair(parameters)
    sends = [one.isend(pattern(20_000, n), partner, n) for n in range(20)]
    cluster.settle()
    assert other.counters()["pool_grown"] > 0
    for number in reversed(range(20)):
        buffer = bytearray(20_000)
        status = other.test(other.irecv(buffer, number))
        assert status is not None
        assert buffer == pattern(20_000, number)
    for send in sends:
        assert cluster.wait(one, send).code == "success"


def test_a_call_that_fails_gives_its_buffer_back() -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair()
    buffer = mmap.mmap(-1, 1 << 31)  # address space only
    with pytest.raises(InputError, match="2147483648 bytes is too long"):
        one.isend(buffer, partner, 1)
    buffer.close()


def test_an_endpoint_that_nobody_closed_warns_and_gives_everything_back() -> None:
    cluster = VirtualCluster()
    endpoint = Endpoint(cluster.nodes[0], 0, 1)
    buffer = bytearray(8)
    endpoint.irecv(buffer, 1)
    with pytest.warns(ResourceWarning, match="endpoint 0 was not closed"):
        del endpoint
    buffer.append(0)
    Endpoint(cluster.nodes[0], 0, 1).close()
