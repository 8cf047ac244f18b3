"""omx_rails: a message is spread over three rails, an endpoint each, up to 16 MiB."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.peer import data, switches
from support.virtual_cluster import VirtualCluster

RAILS = 3


@pytest.mark.parametrize("path", ["native", "shared"])
def test_parts_of_a_message_on_three_rails(path: str) -> None:
    cluster = VirtualCluster(endpoints=2 * RAILS, mtu=9000)
    parameters = switches(path)
    far, first = (1, 0) if path == "native" else (0, RAILS)
    ones = [cluster.open(0, rail, parameters) for rail in range(RAILS)]
    others = [cluster.open(far, first + rail, parameters) for rail in range(RAILS)]
    partners = [cluster.connect(one, far, first + rail) for rail, one in enumerate(ones)]
    for size in [0, *(1 << power for power in range(25))]:
        content = data(size)
        received = bytearray(size)
        marks = [size * rail // RAILS for rail in range(RAILS + 1)]
        parts = [slice(a, b) for a, b in pairwise(marks)]
        receives = [
            other.irecv(memoryview(received)[part], size)
            for other, part in zip(others, parts, strict=True)
        ]
        sends = [
            one.isend(memoryview(content)[part], partner, size)
            for one, partner, part in zip(ones, partners, parts, strict=True)
        ]
        for other, receive, part in zip(others, receives, parts, strict=True):
            status = cluster.wait(other, receive)
            assert (status.code, status.length) == ("success", part.stop - part.start)
        for one, send in zip(ones, sends, strict=True):
            assert cluster.wait(one, send).code == "success"
        assert received == content
        cluster.frames.clear()
    assert [one.counters()["sent_large"] > 0 for one in ones] == [True] * RAILS
