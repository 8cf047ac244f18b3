"""mx_wait_any_test.

Sends and receives of 0, 64, 4096 and 131 072 bytes are under way at once; bit 41 of the match
tells them apart, and wait_any and test_any find only those that they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.peer import LIMIT_NS, data, ends, in_threads
from support.virtual_cluster import VirtualCluster

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Status

SIZES = (0, 64, 4096, 131_072)
BIT = 1 << 41
Find = Callable[[Endpoint, int], Status]


def both_ways(find: Find, endpoint: Endpoint, partner: Partner, outgoing: int) -> None:
    """Messages with `outgoing` go, those with the other value of the bit come."""
    incoming = BIT ^ outgoing
    buffers = [bytearray(size) for size in SIZES]
    for number, size in enumerate(SIZES):
        endpoint.irecv(buffers[number], incoming | number)
        endpoint.isend(data(size, number), partner, outgoing | number)
    for wanted in (incoming, outgoing):
        found = [find(endpoint, wanted) for _ in SIZES]
        assert {status.code for status in found} == {"success"}
        assert {status.match: status.length for status in found} == {
            wanted | number: size for number, size in enumerate(SIZES)
        }
        assert endpoint.test_any(wanted, BIT) is None
    assert buffers == [data(size, number) for number, size in enumerate(SIZES)]


def test_wait_any_finds_what_it_is_asked_for() -> None:
    cluster, one, other, to_other = ends("shared", clock="tsc")
    to_one = cluster.connect(other, 0, 0)

    def find(endpoint: Endpoint, wanted: int) -> Status:
        status = endpoint.wait_any(wanted, BIT, timeout_ns=LIMIT_NS)
        assert status is not None
        return status

    in_threads(
        lambda: both_ways(find, one, to_other, BIT), lambda: both_ways(find, other, to_one, 0)
    )


@pytest.mark.parametrize("path", ["native", "shared"])
def test_test_any_finds_what_it_is_asked_for(path: str) -> None:
    cluster, one, other, to_other = ends(path)
    buffers = [bytearray(size) for size in SIZES]
    for number, size in enumerate(SIZES):
        for bit in (BIT, 0):
            one.isend(data(size, number), to_other, bit | number)
    for number, buffer in enumerate(buffers):
        other.irecv(buffer, BIT | number)
        other.irecv(bytearray(len(buffer)), number)
    assert [one_found(cluster, other, BIT) for _ in SIZES] == [BIT, BIT, BIT, BIT]
    assert [one_found(cluster, other, 0) for _ in SIZES] == [0, 0, 0, 0]
    assert other.test_any() is None
    assert buffers == [data(size, number) for number, size in enumerate(SIZES)]


def one_found(cluster: VirtualCluster, endpoint: Endpoint, wanted: int) -> int:
    """The bit of the next request that is done among those that have it so."""
    found: list[Status] = []

    def look() -> bool:
        status = endpoint.test_any(wanted, BIT)
        found.extend([status] if status else [])
        return bool(found)

    cluster.until(look)
    assert found[0].code == "success"
    return found[0].match & BIT
