"""Size classes and golden packet counts (Open-MX, native wire format)."""

from __future__ import annotations

import pytest

from shrimpmx.errors import InputError
from shrimpmx.wire.tables import (
    eager_packet_count,
    medium_frag_bytes,
    pull_frame_bytes,
    size_class,
)


@pytest.mark.parametrize(
    ("length", "kind", "packets"),
    [
        (0, "tiny", 1),
        (32, "tiny", 1),
        (33, "small", 1),
        (128, "small", 1),
        (129, "medium", 1),
        (1452, "medium", 1),
        (1453, "medium", 2),
        (4096, "medium", 3),
        (16384, "medium", 12),
        (32768, "medium", 23),
    ],
)
def test_golden_packet_counts_at_mtu_1500(length: int, kind: str, packets: int) -> None:
    assert size_class(length) == kind
    assert eager_packet_count(length) == packets


@pytest.mark.parametrize(("length", "packets"), [(129, 1), (8192, 1), (8193, 2), (32768, 4)])
def test_packet_counts_at_mtu_9000(length: int, packets: int) -> None:
    assert eager_packet_count(length, 9000) == packets


def test_fragment_sizes() -> None:
    assert [medium_frag_bytes(mtu) for mtu in (1500, 9000)] == [1452, 8192]
    assert [pull_frame_bytes(mtu) for mtu in (1500, 9000)] == [1468, 8968]


def test_bad_lengths_and_mtus() -> None:
    for length in (-1, 32769):
        with pytest.raises(InputError, match=f"message of {length} bytes is not eager"):
            eager_packet_count(length)
    for length in (0, 1000):
        with pytest.raises(InputError, match="mtu must be 1500 or 9000, not 3"):
            eager_packet_count(length, 3)
