"""Messages of an endpoint to itself: copied by the library, without packets."""

from __future__ import annotations

import pytest
from support.virtual_cluster import VirtualCluster, pattern

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.settings.mx import MxParameters

LENGTHS = [0, 1, 32, 33, 128, 129, 5000, 32768]
PATHS = [{}, {"disable_self": True}, {"disable_self": True, "disable_shared": True}]


def alone(**parameters: bool) -> tuple[VirtualCluster, Endpoint, Partner]:
    cluster = VirtualCluster()
    endpoint = cluster.open(0, parameters=MxParameters(**parameters))
    partner = cluster.connect(endpoint, 0)
    cluster.frames.clear()
    return cluster, endpoint, partner


@pytest.mark.parametrize("parameters", PATHS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("expected", [True, False])
def test_every_path_brings_the_same(
    length: int, expected: bool, parameters: dict[str, bool]
) -> None:
    cluster, endpoint, partner = alone(**parameters)
    buffer = bytearray(length + 10)
    data = pattern(length)
    if expected:
        receive = endpoint.irecv(buffer, 0x50, 0xF0)
        send = endpoint.isend(data, partner, 0x57)
    else:
        send = endpoint.isend(data, partner, 0x57)
        cluster.settle()
        found = endpoint.iprobe(0x50, 0xF0)
        assert found is not None
        assert (found.length, found.match) == (length, 0x57)
        receive = endpoint.irecv(buffer, 0x50, 0xF0)
    status = cluster.wait(endpoint, receive)
    assert (status.code, status.length, status.match) == ("success", length, 0x57)
    assert status.source is not None
    assert (status.source.node, status.source.endpoint) == (0, 0)
    assert buffer == data + bytes(10)
    assert cluster.wait(endpoint, send).code == "success"
    own = {name: endpoint.counters()[name] for name in ("sent_self", "recv_messages")}
    assert own == {"sent_self": 0 if parameters else 1, "recv_messages": 1}
    cluster.settle()
    assert bool(cluster.frames) == ("disable_shared" in parameters)


def test_a_self_send_is_done_at_once() -> None:
    _, endpoint, partner = alone()
    buffer = bytearray(3)
    receive = endpoint.irecv(buffer, 1)
    passes = endpoint.counters()["progress_calls"]
    for send in (endpoint.isend(b"abc", partner, 1), receive, endpoint.isend(b"kept", partner, 2)):
        status = endpoint.test(send)
        assert status is not None
        assert status.code == "success"
    assert endpoint.counters()["progress_calls"] == passes


def test_the_buffer_of_a_kept_message_is_the_senders_again() -> None:
    cluster, endpoint, partner = alone()
    data = bytearray(pattern(1000))
    assert endpoint.test(endpoint.isend(data, partner, 1)) is not None
    data[:] = bytes(1000)
    buffer = bytearray(1000)
    cluster.wait(endpoint, endpoint.irecv(buffer, 1))
    assert buffer == pattern(1000)


def test_the_sender_learns_of_a_truncation() -> None:
    cluster, endpoint, partner = alone()
    buffer = bytearray(10)
    receive = endpoint.irecv(memoryview(buffer)[:4], 1)
    send = endpoint.isend(b"123456", partner, 1)
    assert cluster.wait(endpoint, send).code == "truncated"
    status = cluster.wait(endpoint, receive)
    assert (status.code, status.length, status.transferred) == ("truncated", 6, 4)
    assert buffer == b"1234" + bytes(6)


def test_an_eager_send_that_comes_before_its_receive_does_not_wait_to_learn() -> None:
    cluster, endpoint, partner = alone()
    send = endpoint.isend(b"123456", partner, 1)
    assert cluster.wait(endpoint, send).code == "success"
    status = cluster.wait(endpoint, endpoint.irecv(bytearray(4), 1))
    assert (status.code, status.length, status.transferred) == ("truncated", 6, 4)


def test_messages_to_itself_and_from_others_match_in_order() -> None:
    cluster = VirtualCluster()
    here, there = cluster.open(0), cluster.open(1)
    own, other = cluster.connect(here, 0), cluster.connect(there, 0)
    order = [(there, other, b"a"), (here, own, b"b"), (there, other, b"c"), (here, own, b"d")]
    for endpoint, partner, data in order:
        endpoint.isend(data, partner, 1)
        cluster.settle()
    buffers = [bytearray(1) for _ in order]
    for buffer in buffers:
        assert cluster.wait(here, here.irecv(buffer, 1)).code == "success"
    assert b"".join(buffers) == b"abcd"


def test_a_wrong_key_is_refused_also_by_oneself() -> None:
    cluster = VirtualCluster()
    endpoint = cluster.open(0, key=5)
    status = cluster.wait(endpoint, endpoint.iconnect(0, 0, key=6))
    assert status.code == "bad-connection-key"
    assert cluster.connect(endpoint, 0, key=5).session == endpoint.session


def test_closing_ends_a_send_that_nobody_received() -> None:
    _, endpoint, partner = alone()
    send = endpoint.isend(b"x", partner, 1)
    endpoint.close()
    status = endpoint.test(send)
    assert status is not None
    assert status.code == "success"


def test_disconnecting_ends_what_nobody_has_received() -> None:
    cluster, endpoint, partner = alone()
    sends = [endpoint.issend(b"abc", partner, 1), endpoint.isend(bytes(40_000), partner, 2)]
    kept = endpoint.isend(b"copied", partner, 3)
    endpoint.disconnect(partner)
    assert [cluster.wait(endpoint, send).code for send in (*sends, kept)] == [
        "remote-endpoint-unreachable", "remote-endpoint-unreachable", "success",
    ]  # fmt: skip
    assert endpoint.iprobe(1) is endpoint.iprobe(2) is None
    assert endpoint.iprobe(3) is not None
    partner = cluster.connect(endpoint, 0)
    send = endpoint.issend(b"again", partner, 1)
    assert cluster.wait(endpoint, endpoint.irecv(bytearray(5), 1)).code == "success"
    assert cluster.wait(endpoint, send).code == "success"
