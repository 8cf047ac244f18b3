"""Large messages over a wire that loses, and partners that die or come back in the middle."""

from __future__ import annotations

import random

import pytest
from support.virtual_cluster import MILLISECOND, FaultyWire, VirtualCluster, frame_type, pattern

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request
from shrimpmx.settings.mx import MxParameters

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
    cluster = VirtualCluster(pull_resend_delay_ns=5 * MILLISECOND, resends_max=20)
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
    cluster = VirtualCluster(pull_resend_delay_ns=5 * MILLISECOND, resends_max=20)
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


def busy(parameters: MxParameters, between: int, first: int) -> tuple[
    VirtualCluster, Endpoint, Endpoint, Partner, Request
]:  # fmt: skip
    """A rndv that is not received yet, and `between` messages after it, all acknowledged."""
    cluster = VirtualCluster()
    one, other, partner = cluster.pair(parameters, first_seqnum=first)
    waiting = one.isend(data(1), partner, 2)
    for _ in range(between // 100):
        for _ in range(100):
            one.send(b"", partner, 1)
        cluster.settle()
        for _ in range(100):
            assert other.test(other.irecv(None, 1)) is not None
    for _ in range(between % 100):
        one.send(b"", partner, 1)
    cluster.settle()
    while other.iprobe(1) is not None:
        assert other.test(other.irecv(None, 1)) is not None
    cluster.until(lambda: partner.unacked == 0)
    cluster.frames.clear()
    return cluster, one, other, partner, waiting


# A message's number comes again after 16384; from half of that on it looks like one to come.
@pytest.mark.parametrize("between", [0, 8191, 8192, 16128, 16383, 16384])
@pytest.mark.parametrize("first", [0, 1, 16383])
def test_the_question_is_a_duplicate_after_any_number_of_messages(between: int, first: int) -> None:
    cluster, one, other, partner, waiting = busy(IMPATIENT, between, first)
    before = other.counters()
    cluster.advance(500 * MILLISECOND)  # five times what silence may last
    cluster.settle()
    assert one.counters()["partners_dead"] == 0
    asked = len(cluster.frames_of("rndv"))
    assert asked > 10
    after = other.counters()
    changed = {name for name in before if name.startswith("recv_") and after[name] > before[name]}
    assert changed == {"recv_duplicate", "recv_events"}
    assert after["recv_duplicate"] - before["recv_duplicate"] == asked
    assert after["acks_immediate"] - before["acks_immediate"] == asked
    buffers = [bytearray(3), bytearray(60_000)]
    receives = [other.irecv(buffer, match) for match, buffer in enumerate(buffers, 1)]
    one.send(b"new", partner, 1)
    assert [cluster.wait(other, r).code for r in receives] == ["success"] * 2
    assert buffers == [b"new", data(1)]
    assert cluster.wait(one, waiting).code == "success"
    assert other.iprobe(2) is None


@pytest.mark.parametrize("between", [0, 9000])
def test_a_receiver_that_closed_refuses_the_question(between: int) -> None:
    cluster, one, other, _, waiting = busy(IMPATIENT, between, 1)
    cluster.close(other)
    assert cluster.wait(one, waiting).code == "endpoint-closed"
    assert len(cluster.frames_of("rndv")) == 1


def test_a_silent_receiver_is_given_up_also_after_many_messages() -> None:
    cluster, one, _, _, waiting = busy(IMPATIENT, 9000, 1)
    cluster.wire = lambda frame: []
    assert cluster.wait(one, waiting).code == "remote-endpoint-unreachable"
    assert len(cluster.frames_of("rndv")) == IMPATIENT.resends_max


def test_closing_gives_bounce_buffers_back() -> None:
    cluster = VirtualCluster(heap_bytes=1 << 20)
    bounce = MxParameters(memory="bounce")
    for _ in range(5):
        one, other, partner = cluster.pair(bounce)
        one.isend(data(1, 400_000), partner, 1)
        cluster.settle()
        cluster.close(one)
        cluster.close(other)
