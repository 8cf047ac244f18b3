"""omx_cancel_test.

A connect to a peer that is stopped and receives that nothing matches are cancelled: cancel
ends them at once, and after cancel_notest test_any yields them as cancelled.
"""

from __future__ import annotations

import pytest
from support.peer import ALL_BITS, ends
from support.virtual_cluster import VirtualCluster

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request


def stopped_peer(path: str) -> tuple[VirtualCluster, Endpoint, Endpoint, Partner]:
    """The second endpoint makes no passes any more."""
    cluster, one, other, partner = ends(path)
    cluster.endpoints.remove(other)
    return cluster, one, other, partner


def start(kind: str, one: Endpoint, other: Endpoint, match: int) -> Request:
    if kind == "receive":
        return one.irecv(bytearray(8), match)
    return one.iconnect(other.node.index, other.index, match=match)


@pytest.mark.parametrize("path", ["native", "shared"])
@pytest.mark.parametrize("kind", ["connect", "receive"])
def test_a_cancelled_request_is_over(kind: str, path: str) -> None:
    cluster, one, other, _ = stopped_peer(path)
    request = start(kind, one, other, 5)
    cluster.settle()
    assert one.test(request) is None
    assert one.cancel(request)
    assert request.status is not None
    assert request.status.code == "cancelled"
    assert not one.cancel(request)
    assert one.test_any() is None


@pytest.mark.parametrize("path", ["native", "shared"])
@pytest.mark.parametrize("kind", ["connect", "receive"])
def test_what_is_cancelled_without_a_test_is_found(kind: str, path: str) -> None:
    cluster, one, other, _ = stopped_peer(path)
    request, left = (start(kind, one, other, match) for match in (5, 6))
    cluster.settle()
    assert one.test_any() is None
    assert one.cancel_notest(request)
    assert one.test_any(6, ALL_BITS) is None
    status = one.test_any(5, ALL_BITS)
    assert status is not None
    assert (status.code, status.match) == ("cancelled", 5)
    assert one.test_any() is None
    assert one.cancel(left)


@pytest.mark.parametrize("path", ["native", "shared"])
def test_the_peer_goes_on_as_if_nothing_had_been(path: str) -> None:
    cluster, one, other, partner = stopped_peer(path)
    connect, buffer = start("connect", one, other, 1), bytearray(8)
    receive = one.irecv(buffer, 7)
    cluster.settle()
    assert one.cancel(connect)
    assert one.cancel(receive)
    cluster.endpoints.append(other)
    cluster.advance(1_000_000_000)
    back = cluster.connect(other, 0)
    other.isend(b"for none", back, 7)
    cluster.settle()
    assert buffer == bytes(8)
    assert one.test_any() is None
    again = one.irecv(buffer, 7)
    assert cluster.wait(one, again).code == "success"
    assert buffer == b"for none"
    answer = other.irecv(bytearray(2), 8)
    one.isend(b"ok", partner, 8)
    assert cluster.wait(other, answer).code == "success"
