"""omx_unexp_handler_test.

Lengths 0 to 1 MiB, sent by isend and issend, discarded by the handler of unexpected messages
or not. The handler gets the data exactly if the message is eager and of one fragment; the
sender of a synchronous or large message with data that was discarded learns of a truncation.
"""

from __future__ import annotations

import pytest
from support.peer import data, ends

from shrimpmx.mx.handles import Partner
from shrimpmx.mx.recv import CONTINUE, FINISHED

MATCH = 0xAB


@pytest.mark.parametrize("path", ["native", "shared"])
@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("discard", [False, True])
@pytest.mark.parametrize("length", [0, 16, 100, 1024, 10_000, 1 << 20])
def test_what_the_handler_sees_and_decides(
    length: int, discard: bool, synchronous: bool, path: str
) -> None:
    cluster, one, other, partner = ends(path)
    content = data(length)
    calls: list[tuple[int, int, bytes | None]] = []

    def handler(source: Partner, match: int, told: int, at_hand: memoryview | None) -> int:
        assert source.node == 0
        calls.append((match, told, None if at_hand is None else bytes(at_hand)))
        return FINISHED if discard else CONTINUE

    other.register_unexp_handler(handler)
    eager_max = {"native": 32768, "shared": 4096}[path]
    eager = length <= eager_max and not synchronous
    start = one.issend if synchronous else one.isend
    send = start(content, partner, MATCH)
    cluster.settle()
    assert calls == [(MATCH, length, content if eager and length <= 1452 else None)]
    assert (other.iprobe(MATCH) is None) == discard
    if not discard:
        if not eager:
            assert one.test(send) is None
        buffer = bytearray(length)
        received = cluster.wait(other, other.irecv(buffer, MATCH))
        assert (received.code, received.transferred) == ("success", length)
        assert buffer == content
    sent = cluster.wait(one, send)
    cut = discard and not eager and length > 0
    assert (sent.code, sent.transferred) == (("truncated", 0) if cut else ("success", length))
    assert len(calls) == 1
