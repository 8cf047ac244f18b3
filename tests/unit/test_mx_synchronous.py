"""Synchronous sends are done when they are matched, over every path; forgotten ones end."""

from __future__ import annotations

import pytest
from support.peer import PATHS, alone, data, ends
from support.virtual_cluster import MILLISECOND, perfect_wire

from shrimpmx.mx.handles import Partner
from shrimpmx.mx.recv import CONTINUE, FINISHED

LENGTHS = [0, 1, 100, 4096, 32768, 100_000]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("expected", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_an_issend_is_done_when_it_is_matched(length: int, expected: bool, path: str) -> None:
    cluster, one, other, partner = ends(path)
    buffer = bytearray(length)
    receive = other.irecv(buffer, 7) if expected else None
    send = one.issend(data(length), partner, 7)
    assert one.ibuffered(send) == (expected and path == "self")
    if receive is None:
        cluster.advance(3000 * MILLISECOND)
        assert one.test(send) is None
        assert not one.ibuffered(send)
        found = other.iprobe(7)
        assert found is not None
        assert found.length == length
        receive = other.irecv(buffer, 7)
    status = cluster.wait(other, receive)
    assert (status.code, status.transferred) == ("success", length)
    sent = cluster.wait(one, send)
    assert (sent.code, sent.length, sent.transferred) == ("success", length, length)
    assert buffer == data(length)
    cluster.advance(1000 * MILLISECOND)
    assert partner.unacked == 0
    assert one.drain(0)


@pytest.mark.parametrize("path", PATHS)
def test_synchronous_and_eager_messages_keep_their_order(path: str) -> None:
    cluster, one, other, partner = ends(path)
    sends = [
        (one.issend if number % 2 else one.isend)(data(length, number), partner, 7)
        for number, length in enumerate([0, *LENGTHS, *reversed(LENGTHS)])
    ]
    cluster.settle()
    for number, length in enumerate([0, *LENGTHS, *reversed(LENGTHS)]):
        buffer = bytearray(max(LENGTHS))
        assert cluster.wait(other, other.irecv(buffer, 7)).length == length
        assert buffer[:length] == data(length, number)
    assert {cluster.wait(one, send).code for send in sends} == {"success"}


@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("length", [0, 16, 1024, 10_000, 100_000])
@pytest.mark.parametrize("answer", [CONTINUE, FINISHED])
def test_the_handler_decides_on_messages_to_itself(
    length: int, synchronous: bool, answer: int
) -> None:
    cluster, endpoint, partner = alone("self")
    calls: list[tuple[int, bytes | None]] = []

    def handler(source: Partner, match: int, told: int, at_hand: memoryview | None) -> int:
        calls.append((told, None if at_hand is None else bytes(at_hand)))
        return answer

    endpoint.register_unexp_handler(handler)
    start = endpoint.issend if synchronous else endpoint.isend
    send = start(data(length), partner, 7)
    assert calls == [(length, data(length) if length <= 1452 else None)]
    if answer == CONTINUE:
        assert endpoint.ibuffered(send) == (not synchronous and length <= 32768)
        buffer = bytearray(length)
        assert cluster.wait(endpoint, endpoint.irecv(buffer, 7)).code == "success"
        assert buffer == data(length)
    sent = cluster.wait(endpoint, send)
    cut = answer == FINISHED and length > 0
    assert (sent.code, sent.transferred) == (("truncated", 0) if cut else ("success", length))
    assert endpoint.iprobe(7) is None


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("length", [6, 100, 5000, 100_000])
def test_a_send_to_itself_tells_what_was_transferred(length: int, kept: bool) -> None:
    cluster, endpoint, partner = alone("self")
    room = bytearray(length)
    view = memoryview(room)[: length // 2]
    receive = None if kept else endpoint.irecv(view, 7)
    send = (endpoint.issend if kept else endpoint.isend)(data(length), partner, 7)
    status = cluster.wait(endpoint, receive or endpoint.irecv(view, 7))
    for found in (status, cluster.wait(endpoint, send)):
        assert (found.code, found.length, found.transferred) == ("truncated", length, length // 2)
    assert room == data(length)[: length // 2] + bytes(length - length // 2)


@pytest.mark.parametrize("length", [10, 20_000, 100_000])
def test_a_throttled_send_that_is_forgotten_ends_by_itself(length: int) -> None:
    cluster, one, other, partner = ends("native", mx={"throttle": 2, "zombies_max": 0})
    cluster.wire = lambda frame: []
    content = [bytearray(data(length, number)) for number in range(6)]
    sends = [one.isend(buffer, partner, 7) for buffer in content]
    for send in sends:
        one.forget(send)
    cluster.settle()
    assert partner.unacked == 2
    assert [send.status for send in sends] == [None] * 6
    with pytest.raises(BufferError):
        content[5].extend(b"its buffer is not free")
    cluster.wire = perfect_wire
    for number in range(6):
        buffer = bytearray(length)
        assert cluster.wait(other, other.irecv(buffer, 7)).code == "success"
        assert buffer == data(length, number)
    cluster.until(lambda: all(send.status is not None for send in sends))
    assert {send.status.code for send in sends if send.status} == {"success"}
    assert one.ipeek() is None
    content[5].extend(b"its buffer is free")


def test_a_forgotten_large_send_that_fails_ends_too() -> None:
    cluster, one, other, partner = ends("native", mx={"throttle": 1})
    sends = [one.isend(data(100_000), partner, 7) for _ in range(3)]
    for send in sends:
        one.forget(send)
    cluster.close(other)
    cluster.until(lambda: all(send.status is not None for send in sends))
    assert {send.status.code for send in sends if send.status} == {"endpoint-closed"}
    assert one.ipeek() is None
