"""The calls about requests: any, peek, cancel, forget, timeouts, addresses, information."""

from __future__ import annotations

import pytest
from support.virtual_cluster import VirtualCluster

from shrimpmx.errors import InputError, MxError
from shrimpmx.mx.handles import strerror
from shrimpmx.settings.mx import MxParameters

ALL = 0xFFFF_FFFF_FFFF_FFFF


def test_requests_are_found_in_the_order_they_were_done() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    second = other.irecv(bytearray(4), 2, context="second")
    first = other.irecv(bytearray(4), 1)
    assert other.ipeek() is None
    one.send(b"1", partner, 1)
    one.send(b"2", partner, 2)
    cluster.settle()
    assert other.ipeek() is first
    assert other.ipeek() is first, "a peek takes nothing"
    assert other.ipeek(2, ALL) is second
    status = other.test_any(2, ALL)
    assert (status.match, status.context) == (2, "second")
    assert other.test(second) is status
    assert other.test_any().match == 1
    assert other.test_any() is None
    assert other.peek(1, ALL, timeout_ns=0) is None


def test_sends_that_were_waited_for_are_not_found() -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair()
    requests = [one.isend(bytes([i]), partner, i) for i in range(4)]
    assert one.test(requests[0]) is not None
    assert [one.test_any().match for _ in range(3)] == [1, 2, 3]
    assert one.test_any() is None


def test_a_cancelled_request_is_over_or_left_to_be_found() -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair()
    gone, left = one.irecv(bytearray(4), 7), one.irecv(bytearray(4), 8)
    assert one.cancel(gone)
    assert gone.status is not None
    assert gone.status.code == "cancelled"
    assert not one.cancel(gone)
    assert one.cancel_notest(left)
    assert one.test_any(8, ALL).code == "cancelled"
    assert not one.cancel(one.isend(b"", partner, 1)), "sends cannot be taken back"
    connect = one.iconnect(1, 0, match=9)
    assert one.cancel_notest(connect)
    assert one.test_any(9, ALL).code == "cancelled"


def test_a_forgotten_request_ends_by_itself() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    buffer = bytearray(3)
    later, never = other.irecv(buffer, 1), other.irecv(bytearray(1), 2)
    other.forget(later)
    one.send(b"abc", partner, 1)
    one.send(b"x", partner, 2)
    cluster.settle()
    assert buffer == b"abc"
    assert later.status is not None
    assert other.ipeek() is never
    buffer.extend(b"its buffer is free")
    other.forget(never)
    assert never.status is not None
    assert other.ipeek() is None


def test_buffered_means_that_the_buffer_may_be_used() -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair(MxParameters(zombies_max=1))
    copied, held = one.isend(b"1", partner), one.isend(b"2", partner)
    assert one.ibuffered(copied)
    assert not one.ibuffered(held)
    cluster.advance(20_000_000)
    assert one.ibuffered(held)


@pytest.mark.parametrize(("milliseconds", "resends"), [(1, 1), (512, 1), (1024, 2), (1025, 3)])
def test_a_request_is_given_up_after_its_timeout(milliseconds: int, resends: int) -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair(MxParameters(zombies_max=0))
    cluster.wire = lambda frame: []
    request = one.isend(b"lost", partner, 1)
    one.set_request_timeout(request, milliseconds * 1_000_000)
    assert cluster.wait(one, request).code == "remote-endpoint-unreachable"
    assert one.counters()["resent_messages"] == resends
    with pytest.raises(InputError, match="positive"):
        one.set_request_timeout(None, 0)


def test_send_and_recv_wait_for_what_is_there() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    assert one.send(b"four", partner, 3).transferred == 4
    cluster.settle()
    buffer = bytearray(2)
    status = other.recv(buffer, 3)
    assert (status.code, status.length, status.transferred) == ("truncated", 4, 2)
    assert buffer == b"fo"
    assert status.source is not None
    assert status.source.node == 0
    with pytest.raises(MxError, match="came within 0 ns") as caught:
        other.recv(buffer, 4, timeout_ns=0)
    assert caught.value.status == "timeout"
    buffer.extend(b"it was given back")
    assert other.counters()["cancelled"] == 1
    one.disconnect(partner)
    with pytest.raises(MxError) as caught:
        one.send(b"", partner)
    assert caught.value.status == "remote-endpoint-unreachable"


def test_addresses_say_what_they_are_of() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    assert one.decompose_endpoint_addr(partner) == (1, 0)
    assert one.decompose_endpoint_addr2(partner) == (1, 0, other.session)
    own = one.get_endpoint_addr()
    assert one.decompose_endpoint_addr2(own) == (0, 0, one.session)
    assert one.get_endpoint_addr_context(partner) is None
    one.set_endpoint_addr_context(partner, "mine")
    assert one.get_endpoint_addr_context(partner) == "mine"
    assert one.hostname_of_node(1) == "node1"
    assert one.node_of_hostname("node1") == 1
    for lookup in (lambda: one.hostname_of_node(2), lambda: one.node_of_hostname("node01")):
        with pytest.raises(InputError, match="there is no node"):
            lookup()


def test_information_and_errors_have_words() -> None:
    cluster = VirtualCluster()
    one, _, _partner = cluster.pair()
    info = one.get_info()
    assert (info["nodes"], info["tiny_max"], info["small_max"], info["segments_max"]) == (
        2, 32, 128, 256)  # fmt: skip
    assert "key" in strerror("bad-connection-key")
    with pytest.raises(InputError, match="no status"):
        strerror("nonsense")
    seen: list[str] = []
    one.set_error_handler(lambda message, code: seen.append(code))
    with pytest.raises(MxError):
        one.irecv(None, 3, 1)
    assert seen == ["bad-match-mask"]


def test_without_progression_only_what_is_done_is_seen() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    request = other.irecv(bytearray(4), 1)
    one.send(b"1", partner, 1)
    other.disable_progression()
    cluster.settle()
    assert other.progress() == 0
    assert other.test(request) is None
    with pytest.raises(MxError, match="disabled"):
        other.wait(request)
    other.reenable_progression()
    assert other.test(request) is not None
