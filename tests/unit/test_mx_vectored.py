"""Messages of several segments: all bytes in order, none beside them touched."""

from __future__ import annotations

import random

import pytest
from support.virtual_cluster import VirtualCluster, pattern

from shrimpmx.errors import InputError

GUARD = 0xFE


def cut(length: int, rng: random.Random) -> list[int]:
    """Up to ten parts, some of them empty."""
    marks = sorted(rng.randint(0, length) for _ in range(rng.randint(0, 9)))
    return [b - a for a, b in zip([0, *marks], [*marks, length], strict=True)]


@pytest.mark.parametrize("length", [0, 7, 30, 91, 117, 13573, 24684, 357814])
def test_segments_arrive_in_segments(length: int) -> None:
    rng = random.Random(length)
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    data = pattern(length)
    parts, sent = [], 0
    for part in cut(length, rng):
        parts.append(memoryview(data)[sent : sent + part] if part else None)
        sent += part
    send = one.isendv(parts, partner, 5)
    rooms = [bytearray([GUARD]) * (part + 8) for part in cut(length, rng)]
    targets = [memoryview(room)[4:-4] for room in rooms]
    receive = other.irecvv([None, *targets], 5)
    assert cluster.wait(other, receive).transferred == length
    assert cluster.wait(one, send).code == "success"
    assert b"".join(targets) == data
    assert all(room[:4] == room[-4:] == bytes([GUARD]) * 4 for room in rooms)


def test_a_short_message_leaves_later_segments_alone() -> None:
    cluster = VirtualCluster()
    one, other, partner = cluster.pair()
    first, second = bytearray(b"....."), bytearray(b".....")
    receive = other.irecvv([first, second], 1)
    one.send(b"seven b", partner, 1)
    assert cluster.wait(other, receive).length == 7
    assert bytes(first + second) == b"seven b..."


def test_segments_that_cannot_be_are_refused() -> None:
    cluster = VirtualCluster()
    one, _, partner = cluster.pair()
    with pytest.raises(InputError, match="at most 256 segments, not 257"):
        one.isendv([None] * 257, partner)
    with pytest.raises(InputError, match="read-only"):
        one.irecvv([b"constant"])
