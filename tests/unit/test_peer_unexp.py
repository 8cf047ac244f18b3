"""omx_unexp_test, also with OMX_CTXIDS=10,10.

A probe finds exactly what was sent, a probe for other bits finds nothing, a masked one works,
and a receive consumes it.
"""

from __future__ import annotations

import pytest
from support.peer import ALL_BITS, LIMIT_NS, PATHS, ends, in_threads

from shrimpmx.errors import MxError

MATCH = 0x1234_5678_9ABC_DEF0
CONTEXT = 0x3FF << 10
PLAIN: dict[str, int] = {}
CONTEXTS = {"context_id_bits": 10, "context_id_shift": 10}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("mx", [PLAIN, CONTEXTS], ids=["", "10,10"])
@pytest.mark.parametrize("length", [0, 24, 100, 5000])
def test_a_probe_finds_what_was_sent(length: int, mx: dict[str, int], path: str) -> None:
    cluster, one, other, partner = ends(path, mx)
    one.isend(bytes(length), partner, MATCH)
    cluster.settle()
    found = other.iprobe(MATCH)
    assert found is not None
    assert (found.code, found.match, found.length) == ("success", MATCH, length)
    assert found.source is not None
    assert (found.source.node, found.source.endpoint) == (0, 0)
    for bit in range(64):
        assert other.iprobe(MATCH ^ 1 << bit) is None
    masked = other.iprobe(MATCH & (0xFFFF | CONTEXT), 0xFFFF | CONTEXT)
    assert masked is not None
    assert masked.match == MATCH
    assert other.iprobe(0x1111 | MATCH & CONTEXT, 0xFFFF | CONTEXT) is None
    receive = other.irecv(bytearray(length), MATCH & CONTEXT, CONTEXT)
    assert cluster.wait(other, receive).match == MATCH
    assert other.iprobe(MATCH) is None


def test_contexts_do_not_see_each_other() -> None:
    cluster, one, other, partner = ends("native", CONTEXTS)
    first, second = 5 << 10, 6 << 10
    one.isend(b"second", partner, second | 1)
    one.isend(b"first", partner, first | 1)
    cluster.settle()
    found = other.iprobe(first, CONTEXT)
    assert found is not None
    assert found.match == first | 1
    buffer = bytearray(6)
    assert cluster.wait(other, other.irecv(buffer, first, CONTEXT)).length == 5
    assert buffer == b"first\0"
    assert cluster.wait(other, other.irecv(buffer, second, CONTEXT)).length == 6
    assert buffer == b"second"
    for mask in (0, ALL_BITS ^ 1 << 10):
        with pytest.raises(MxError) as caught:
            other.iprobe(0, mask)
        assert caught.value.status == "bad-match-mask"


def test_a_blocking_probe_waits_for_the_message() -> None:
    _, one, other, partner = ends("shared", clock="tsc")

    def receive() -> int:
        found = other.probe(MATCH & 0xFFFF, 0xFFFF, timeout_ns=LIMIT_NS)
        assert found is not None
        return other.recv(bytearray(5), found.match, timeout_ns=LIMIT_NS).length

    lengths = in_threads(receive, lambda: one.send(b"found", partner, MATCH))
    assert lengths[0] == 5
    one.close()
    other.close()
