"""A stream of messages of mixed sizes, checked for order and content."""

from __future__ import annotations

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request
from support.virtual_cluster import VirtualCluster, pattern

SIZES = [0, 20, 90, 700, 5000, 14_000]


def exchange(
    cluster: VirtualCluster,
    one: Endpoint,
    other: Endpoint,
    partner: Partner,
    count: int = 40,
    posted: int = 10,
) -> None:
    """Send `count` messages of mixed sizes and check that they match receives in order."""
    receives: list[tuple[bytearray, Request]] = []

    def post() -> None:
        buffer = bytearray(16384)
        receives.append((buffer, other.irecv(buffer, 0, 0)))

    for _ in range(posted):
        post()
    sends = []
    for number in range(count):
        sends.append(one.isend(pattern(SIZES[number % len(SIZES)], number), partner, number))
        cluster.step()
    for number in range(count):
        buffer, request = receives[number]
        status = cluster.wait(other, request)
        length = SIZES[number % len(SIZES)]
        assert (status.code, status.match, status.length) == ("success", number, length)
        assert buffer[:length] == pattern(length, number)
        if len(receives) < count:
            post()
    for send in sends:
        assert cluster.wait(one, send).code == "success"
    cluster.until(lambda: partner.unacked == 0)
    cluster.settle()
    assert other.iprobe(0, 0) is None
