"""omx_vect_test.

Messages of at most ten segments, some of them NULL and empty, in all sizes and over all paths:
the bytes arrive in order, and the sentinels beside the segments stay.
"""

from __future__ import annotations

import random

import pytest
from support.peer import PATHS, data, ends

SENTINEL = 0x5A
SENTINELS = bytes([SENTINEL]) * 16
TOTALS = [7, 30, 91, 117, 13_573, 24_684, 357_814]
SEGMENTS_MAX = 10


def cut(length: int, rng: random.Random) -> list[int]:
    """One to ten parts, some of them empty."""
    marks = sorted(rng.randint(0, length) for _ in range(rng.randint(0, SEGMENTS_MAX - 1)))
    parts = [end - start for start, end in zip([0, *marks], [*marks, length], strict=True)]
    if len(parts) < SEGMENTS_MAX:
        parts.insert(rng.randint(0, len(parts)), 0)
    return parts


def segments(content: bytes, rng: random.Random) -> list[bytes | None]:
    parts, start = [], 0
    for length in cut(len(content), rng):
        parts.append(content[start : start + length] or None)
        start += length
    return parts


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["vectored to plain", "plain to vectored", "vectored"])
@pytest.mark.parametrize("total", TOTALS)
def test_segments(total: int, kind: str, path: str) -> None:
    rng = random.Random(f"{total} {kind} {path}")
    cluster, one, other, partner = ends(path)
    content = data(total)
    for synchronous in (False, True):
        lengths = [total] if kind == "vectored to plain" else cut(total, rng)
        rooms = [bytearray(SENTINELS + bytes(length) + SENTINELS) for length in lengths]
        targets = [memoryview(room)[16:-16] for room in rooms]
        if kind == "plain to vectored":
            send = (one.issend if synchronous else one.isend)(content, partner, 1)
        else:
            parts = segments(content, rng)
            assert len(parts) <= SEGMENTS_MAX
            assert None in parts or len(parts) == SEGMENTS_MAX
            send = (one.issendv if synchronous else one.isendv)(parts, partner, 1)
        if kind == "vectored to plain":
            receive = other.irecv(targets[0], 1)
        else:
            receive = other.irecvv([target if len(target) else None for target in targets], 1)
        status = cluster.wait(other, receive)
        assert (status.code, status.length, status.transferred) == ("success", total, total)
        assert cluster.wait(one, send).code == "success"
        assert b"".join(targets) == content
        assert all(room[:16] == room[-16:] == SENTINELS for room in rooms)
