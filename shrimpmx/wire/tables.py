"""Size classes of MX messages and how many packets each one takes.

Source: Open-MX 1.5.4, native wire format; the coalescing paper, III-A.
"""

from __future__ import annotations

from typing import Literal

from shrimpmx.errors import InputError

SizeClass = Literal["tiny", "small", "medium"]

TINY_MAX_BYTES = 32
SMALL_MAX_BYTES = 128
EAGER_MAX_BYTES = 32768
"""Largest message sent without asking the receiver first (Open-MX OMX_RNDV_THRESHOLD)."""

MEDIUM_OVERHEAD_BYTES = 48
PULL_REPLY_OVERHEAD_BYTES = 32
MEDIUM_FRAGS_MAX = 32
PULL_BLOCK_FRAMES_MAX = 32
MTUS = (1500, 9000)


def _check_mtu(mtu: int) -> None:
    if mtu not in MTUS:
        raise InputError(f"mtu must be 1500 or 9000, not {mtu}")


def medium_frag_bytes(mtu: int) -> int:
    """Data bytes of a full medium fragment: all that fits up to 4096, else 8192 or 4096."""
    _check_mtu(mtu)
    room = mtu - MEDIUM_OVERHEAD_BYTES
    if room <= 4096:
        return room
    return 8192 if room >= 8192 else 4096


def pull_frame_bytes(mtu: int) -> int:
    """Data bytes of a full pull reply."""
    _check_mtu(mtu)
    return mtu - PULL_REPLY_OVERHEAD_BYTES


def size_class(length_bytes: int) -> SizeClass:
    """How a message of this length travels; InputError above the eager maximum."""
    if not 0 <= length_bytes <= EAGER_MAX_BYTES:
        raise InputError(
            f"a message of {length_bytes} bytes is not eager; lengths from 0 to "
            f"{EAGER_MAX_BYTES} are"
        )
    if length_bytes <= TINY_MAX_BYTES:
        return "tiny"
    return "small" if length_bytes <= SMALL_MAX_BYTES else "medium"


def eager_packet_count(length_bytes: int, mtu: int = 1500) -> int:
    """Packets that carry one eager message, acknowledgements excluded.

    The last one of them is marked latency-sensitive (coalescing paper, III-B).
    """
    if size_class(length_bytes) != "medium":
        _check_mtu(mtu)
        return 1
    return -(-length_bytes // medium_frag_bytes(mtu))
