"""Large messages over a wire that loses, and partners that die or come back in the middle."""

from __future__ import annotations

import random

import pytest
from support.virtual_cluster import MILLISECOND, FaultyWire, VirtualCluster, frame_type, pattern

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.params import MxParameters

SHORT = MxParameters(resend_delay_ns=5 * MILLISECOND, ack_delay_ns=MILLISECOND)
IMPATIENT = MxParameters(
    resend_delay_ns=5 * MILLISECOND, ack_delay_ns=MILLISECOND, resends_max=20
)  # fmt: skip
TYPES = ("rndv", "pull_request", "pull_reply", "notify", "truc", "")


def data(number: int, length: int = 60_000) -> bytes:
    return pattern(1000, number) * (length // 1000)


@pytest.mark.parametrize("only", TYPES)
@pytest.mark.parametrize("fault", ["loss", "duplicate", "reorder"])
def test_exactly_once_and_in_order(only: str, fault: str) -> None:
    cluster = VirtualCluster(seed=3, pull_resend_delay_ns=5 * MILLISECOND)
    one, other, partner = cluster.pair(SHORT)
    cluster.wire = FaultyWire(
        random.Random(5), **{fault: 0.3}, degree=7, only=(only,) if only else ()
    )
    sends, receives = [], []
    for i in range(12):
        content = data(i) if i % 3 else data(i, 2000)
        sends.append(one.isend(content, partner, 1))
        if i % 2:
            buffer = bytearray(60_000)
            receives.append((other.irecv(buffer, 1), buffer))
    while len(receives) < 12:
        cluster.settle()
        buffer = bytearray(60_000)
        receives.append((other.irecv(buffer, 1), buffer))
    for i, (receive, buffer) in enumerate(receives):
        status = cluster.wait(other, receive)
        content = data(i) if i % 3 else data(i, 2000)
        assert (status.code, status.length) == ("success", len(content))
        assert buffer[: len(content)] == content
    for send in sends:
        assert cluster.wait(one, send).code == "success"
    cluster.wire = FaultyWire(random.Random(1))
    cluster.until(lambda: partner.unacked == 0)
    assert other.iprobe(1) is None


def test_a_notify_may_overtake_the_ack_of_its_message() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(SHORT)
    lost = [2]

    def lose_a_fragment(frame: bytes) -> list[tuple[int, bytes]]:
        if frame_type(frame) == "medium_frag":
            lost[0] -= 1
            if lost[0] == 0:
                return []
        return [(1000, frame)]

    cluster.wire = lose_a_fragment
    receives = [other.irecv(bytearray(60_000), 1) for _ in range(2)]
    medium = one.isend(data(1, 10_000), partner, 1)
    large = one.isend(data(2), partner, 1)
    cluster.settle()
    assert other.test(receives[0]) is None
    assert other.test(receives[1]) is not None
    assert cluster.wait(one, large).transferred == 60_000
    assert partner.unacked == 2
    assert cluster.wait(one, medium).code == "success"
    cluster.until(lambda: partner.unacked == 0)
    assert cluster.wait(other, receives[0]).code == "success"


def in_mid_transfer(
    parameters: MxParameters,
) -> tuple[VirtualCluster, Endpoint, Endpoint, object, object]:
    """A message of 500 kB of which some blocks have come."""
    cluster = VirtualCluster(pull_resend_delay_ns=5 * MILLISECOND, pull_resends_max=20)
    one, other, partner = cluster.pair(parameters)
    receive = other.irecv(bytearray(500_000), 1)
    send = one.isend(data(1, 500_000), partner, 1)
    cluster.until(lambda: len(cluster.frames_of("pull_reply")) > 150)
    assert one.test(send) is None
    assert other.test(receive) is None
    return cluster, one, other, send, receive


def test_a_receiver_that_closes_ends_the_send() -> None:
    cluster, one, other, send, _ = in_mid_transfer(IMPATIENT)
    cluster.close(other)
    assert cluster.wait(one, send).code == "endpoint-closed"
    assert one.counters()["partners_dead"] == 1


def test_a_sender_that_closes_ends_the_receive() -> None:
    cluster, one, other, _, receive = in_mid_transfer(IMPATIENT)
    cluster.close(one)
    assert cluster.wait(other, receive).code == "endpoint-closed"


def test_silence_ends_both() -> None:
    cluster, one, other, send, receive = in_mid_transfer(IMPATIENT)
    cluster.wire = lambda frame: []
    assert cluster.wait(one, send).code == "remote-endpoint-unreachable"
    assert cluster.wait(other, receive).code == "remote-endpoint-unreachable"


@pytest.mark.parametrize("posted", [True, False])
def test_a_restarted_sender_ends_the_receive(posted: bool) -> None:
    cluster = VirtualCluster(pull_resend_delay_ns=5 * MILLISECOND, pull_resends_max=20)
    one, other, partner = cluster.pair(IMPATIENT)
    receive = other.irecv(bytearray(500_000), 1) if posted else None
    one.isend(data(1, 500_000), partner, 1)
    if posted:
        cluster.until(lambda: len(cluster.frames_of("pull_reply")) > 150)
    else:
        cluster.settle()
    cluster.close(one)
    again = cluster.open(0, parameters=IMPATIENT)
    partner = cluster.connect(again, 1)
    if receive is not None:
        assert cluster.wait(other, receive).code != "success"
    second = bytearray(500_000)
    receive = other.irecv(second, 1)
    send = again.isend(data(2, 500_000), partner, 1)
    assert cluster.wait(again, send).code == "success"
    assert cluster.wait(other, receive).code == "success"
    assert second == data(2, 500_000)
    cluster.advance(200 * MILLISECOND)
    assert second == data(2, 500_000)


def test_a_restarted_receiver_ends_the_send() -> None:
    cluster, one, other, send, _ = in_mid_transfer(IMPATIENT)
    cluster.close(other)
    again = cluster.open(1, parameters=IMPATIENT)
    cluster.connect(again, 0)
    assert cluster.wait(one, send).code != "success"
    again.close()
    cluster.endpoints.remove(again)


def test_a_message_that_nobody_receives_waits_without_end() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(IMPATIENT)
    send = one.isend(data(1), partner, 1)
    cluster.advance(1000 * MILLISECOND)  # ten times what silence may last
    assert one.test(send) is None
    assert cluster.frames_of("rndv")
    received = bytearray(60_000)
    assert cluster.wait(other, other.irecv(received, 1)).code == "success"
    assert cluster.wait(one, send).code == "success"
    assert received == data(1)


def test_closing_gives_bounce_buffers_back() -> None:
    cluster = VirtualCluster(heap_bytes=1 << 20)
    bounce = MxParameters(memory="bounce")
    for _ in range(5):
        one, other, partner = cluster.pair(bounce)
        one.isend(data(1, 400_000), partner, 1)
        cluster.settle()
        cluster.close(one)
        cluster.close(other)
