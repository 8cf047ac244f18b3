"""omx_truncated_test.

Messages of 10, 120, 20 000 and 1 MiB into buffers of half their length: the receiver learns of
the truncation, the sender if the message was large or went to itself, and no byte beyond the
buffer is touched.
"""

from __future__ import annotations

import pytest
from support.peer import PATHS, data, ends

GUARD = bytes([0xA5]) * 64
# Longest message whose sender is done before the receiver has it.
EAGER_MAX = {"native": 32768, "shared": 4096, "self": 32768}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize("length", [10, 120, 20_000, 1 << 20])
def test_half_a_message(length: int, expected: bool, path: str) -> None:
    cluster, one, other, partner = ends(path)
    half = length // 2
    content = data(length)
    whole = bytearray(GUARD + bytes(half) + GUARD * (half // len(GUARD) + 1))
    room = memoryview(whole)[len(GUARD) : len(GUARD) + half]
    beyond = bytes(whole[len(GUARD) + half :])
    if expected:
        receive = other.irecv(room, 1)
        send = one.isend(content, partner, 1)
    else:
        send = one.isend(content, partner, 1)
        cluster.settle()
        receive = other.irecv(room, 1)
    received = cluster.wait(other, receive)
    assert (received.code, received.length, received.transferred) == ("truncated", length, half)
    sent = cluster.wait(one, send)
    # To oneself the receive is known at once, unless it comes after the message was copied.
    told = length > EAGER_MAX[path] or (path == "self" and expected)
    assert (sent.code, sent.length) == ("truncated" if told else "success", length)
    assert sent.transferred == (half if told else length)
    assert room == content[:half]
    assert whole[: len(GUARD)] == GUARD
    assert whole[len(GUARD) + half :] == beyond
