"""How many packets a message takes, by the formats alone.

Source: Open-MX 1.5.4, native and compatible wire format; the coalescing paper, III-A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shrimpmx.errors import InputError
from shrimpmx.wire.tables import (
    EAGER_MAX_BYTES,
    SMALL_MAX_BYTES,
    TINY_MAX_BYTES,
    WireGeometry,
    wire_geometry,
)

SizeClass = Literal["tiny", "small", "medium", "large"]


def size_class(length_bytes: int, threshold_bytes: int = EAGER_MAX_BYTES) -> SizeClass:
    """How a message of this length travels; it is large above `threshold_bytes`."""
    if length_bytes < 0:
        raise InputError(f"a message cannot have {length_bytes} bytes")
    if length_bytes > threshold_bytes:
        return "large"
    if length_bytes <= TINY_MAX_BYTES:
        return "tiny"
    return "small" if length_bytes <= SMALL_MAX_BYTES else "medium"


def eager_packet_count(length_bytes: int, mtu: int = 1500, wire_format: str = "native") -> int:
    """Packets that carry one eager message, acknowledgements excluded.

    The last one of them is marked latency-sensitive (coalescing paper, III-B).
    InputError if fragments cannot carry the message.
    """
    geometry = wire_geometry(mtu, wire_format)
    if not 0 <= length_bytes <= geometry.medium_max_bytes:
        raise InputError(
            f"a message of {length_bytes} bytes is not eager; lengths from 0 to "
            f"{geometry.medium_max_bytes} can be"
        )
    if length_bytes <= SMALL_MAX_BYTES:
        return 1
    return -(-length_bytes // geometry.medium_frag_bytes)


@dataclass(frozen=True)
class LargePacketCounts:
    """Packets of one large message without loss, acknowledgements excluded.

    Rendezvous and replies travel to the receiver of the message, pull requests and notify to
    its sender.
    """

    pull_requests: int
    pull_replies: int
    rndv: int = 1
    notify: int = 1

    @property
    def total(self) -> int:
        """All packets, both ways."""
        return self.rndv + self.pull_requests + self.pull_replies + self.notify

    @property
    def marked_at_receiver(self) -> int:
        """Marked packets that the receiver gets: the rendezvous, the last reply of each block."""
        return self.rndv + self.pull_requests

    @property
    def marked_at_sender(self) -> int:
        """Marked packets that the sender gets: the pull requests and the notify."""
        return self.pull_requests + self.notify


def large_packet_counts(
    length_bytes: int, geometry: WireGeometry, rdma_offset: int = 0
) -> LargePacketCounts:
    """Packets of a large message that lies `rdma_offset` bytes into its sender's region.

    Frames are cut at multiples of their size in the region, so that the first frame, and with
    it the first block, is shorter by what lies before the message. An empty message, which
    only a synchronous send makes large, is not pulled.
    """
    if length_bytes < 0 or rdma_offset < 0:
        raise InputError(f"a message cannot have {length_bytes} bytes at offset {rdma_offset}")
    if length_bytes == 0:
        return LargePacketCounts(0, 0)
    end = rdma_offset % geometry.pull_frame_bytes + length_bytes
    block_bytes = geometry.pull_frame_bytes * geometry.pull_block_frames
    return LargePacketCounts(-(-end // block_bytes), -(-end // geometry.pull_frame_bytes))
