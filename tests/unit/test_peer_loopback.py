"""omx_loopback_test, native, shared (-s) and self (-S).

Four messages at a time of an endpoint to itself, sent before they are received, ten times:
lengths 13, 95, 13 274 and 9 327 485. The first send is waited for, the others are found by peek
in the order in which they were sent; every byte is checked.
"""

from __future__ import annotations

import pytest
from support.peer import PATHS, alone, data, peeked

ITERATIONS, PARALLEL = 10, 4


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("length", [13, 95, 13_274, 9_327_485])
def test_messages_to_oneself(length: int, path: str) -> None:
    cluster, endpoint, partner = alone(path, mtu=9000)
    contents = [data(length, number) for number in range(PARALLEL)]
    for _ in range(ITERATIONS):
        buffers = [bytearray(length) for _ in contents]
        sends = [endpoint.isend(one, partner, match) for match, one in enumerate(contents)]
        cluster.settle()
        for match in range(PARALLEL):
            assert endpoint.iprobe(match) is not None, "it is unexpected"
        receives = [endpoint.irecv(buffer, match) for match, buffer in enumerate(buffers)]
        for match, receive in enumerate(receives):
            status = cluster.wait(endpoint, receive)
            assert (status.code, status.match, status.length) == ("success", match, length)
        assert cluster.wait(endpoint, sends[0]).code == "success"
        for send in sends[1:]:
            assert peeked(cluster, endpoint) is send
            sent = endpoint.test(send)
            assert sent is not None
            assert (sent.code, sent.transferred) == ("success", length)
        assert endpoint.ipeek() is None
        assert buffers == contents
        assert bool(cluster.frames) == (path == "native")
        cluster.frames.clear()
