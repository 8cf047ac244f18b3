"""Size classes and golden packet counts (Open-MX, native and compatible wire format)."""

from __future__ import annotations

import pytest
from support.packet_counts import eager_packet_count, large_packet_counts, size_class

from shrimpmx.errors import InputError
from shrimpmx.wire.tables import rndv_threshold, wire_geometry

FORMATS = {
    "1500": (1500, "native"),
    "9000": (9000, "native"),
    "compatible": (9000, "compatible"),
}


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


@pytest.mark.parametrize(
    ("wire", "length", "packets"),
    [
        ("9000", 129, 1),
        ("9000", 8192, 1),
        ("9000", 8193, 2),
        ("9000", 32768, 4),
        ("compatible", 32, 1),
        ("compatible", 128, 1),
        ("compatible", 4096, 1),
        ("compatible", 4097, 2),
        ("compatible", 32768, 8),
    ],
)
def test_packet_counts_with_larger_frames(wire: str, length: int, packets: int) -> None:
    assert eager_packet_count(length, *FORMATS[wire]) == packets


@pytest.mark.parametrize(
    ("wire", "length", "frames", "blocks", "total", "marked"),
    [
        ("1500", 32769, 23, 1, 26, (2, 2)),
        ("1500", 65536, 45, 2, 49, (3, 3)),
        ("1500", 131072, 90, 3, 95, (4, 4)),
        ("1500", 234880, 160, 5, 167, (6, 6)),
        ("1500", 262144, 179, 6, 187, (7, 7)),
        ("1500", 1 << 20, 715, 23, 740, (24, 24)),
        ("1500", 4 << 20, 2858, 90, 2950, (91, 91)),
        ("9000", 65536, 8, 1, 11, (2, 2)),
        ("9000", 1 << 20, 117, 4, 123, (5, 5)),
        ("9000", 4 << 20, 468, 15, 485, (16, 16)),
        ("compatible", 65536, 16, 2, 20, (3, 3)),
        ("compatible", 1 << 20, 256, 32, 290, (33, 33)),
        ("compatible", 4 << 20, 1024, 128, 1154, (129, 129)),
    ],
)
def test_golden_packet_counts_of_large_messages(
    wire: str, length: int, frames: int, blocks: int, total: int, marked: tuple[int, int]
) -> None:
    assert size_class(length) == "large"
    counts = large_packet_counts(length, wire_geometry(*FORMATS[wire]))
    assert (counts.rndv, counts.notify) == (1, 1)
    assert (counts.pull_replies, counts.pull_requests, counts.total) == (frames, blocks, total)
    assert (counts.marked_at_receiver, counts.marked_at_sender) == marked


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("offset", [0, 1, 1000, 1467, 1468, 4096, 65535])
@pytest.mark.parametrize("length", [0, 1, 1469, 40000, 300_001])
def test_counts_of_large_messages_are_those_of_the_cuts(
    wire: str, offset: int, length: int
) -> None:
    """Cut frame by frame and block by block, as a puller does."""
    geometry = wire_geometry(*FORMATS[wire])
    full = geometry.pull_frame_bytes
    first, rest, frames, blocks = offset % full, length, 0, 0
    while rest > 0:
        block = min(rest, full * geometry.pull_block_frames - first)
        blocks += 1
        while block > 0:
            frame = min(block, full - first)
            first, frames = 0, frames + 1
            block, rest = block - frame, rest - frame
    counts = large_packet_counts(length, geometry, offset)
    assert (counts.pull_replies, counts.pull_requests) == (frames, blocks)
    assert counts.total == frames + blocks + 2


def test_geometries() -> None:
    geometries = [wire_geometry(*wire) for wire in FORMATS.values()]
    assert [geometry.medium_frag_bytes for geometry in geometries] == [1452, 8192, 4096]
    assert [geometry.medium_frags_max for geometry in geometries] == [32, 32, 8]
    assert [geometry.medium_max_bytes for geometry in geometries] == [46464, 262144, 32768]
    assert [geometry.pull_frame_bytes for geometry in geometries] == [1468, 8968, 4096]
    assert [geometry.pull_block_frames for geometry in geometries] == [32, 32, 8]


def test_size_classes_follow_the_threshold() -> None:
    assert [size_class(length, 4096) for length in (32, 128, 4096, 4097)] == [
        "tiny", "small", "medium", "large",
    ]  # fmt: skip
    assert [size_class(length) for length in (32768, 32769)] == ["medium", "large"]
    geometry = wire_geometry()
    assert [rndv_threshold(wanted, geometry) for wanted in (0, 4096, 1 << 20)] == [
        128, 4096, 46464,
    ]  # fmt: skip


def test_bad_lengths_and_mtus() -> None:
    for length in (-1, 46465):
        with pytest.raises(InputError, match=f"message of {length} bytes is not eager"):
            eager_packet_count(length)
    with pytest.raises(InputError, match="32769 bytes is not eager; lengths from 0 to 32768"):
        eager_packet_count(32769, 9000, "compatible")
    with pytest.raises(InputError, match="cannot have -1 bytes"):
        size_class(-1)
    with pytest.raises(InputError, match="cannot have -1 bytes at offset 0"):
        large_packet_counts(-1, wire_geometry())
    for length in (0, 1000):
        with pytest.raises(InputError, match="mtu must be 1500 or 9000, not 3"):
            eager_packet_count(length, 3)
    with pytest.raises(InputError, match="must be native or compatible, not 'mx'"):
        wire_geometry(9000, "mx")
    with pytest.raises(InputError, match="needs mtu 9000, not 1500"):
        wire_geometry(1500, "compatible")
