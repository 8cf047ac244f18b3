"""Size classes of MX messages, and how frames are cut.

Source: Open-MX 1.5.4, native and compatible wire format; the coalescing paper, III-A.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shrimpmx.errors import InputError, did_you_mean

# -- Packet types by name, and the hardware addresses of nodes.

# By the number on the wire (enum packet_type of wire.h).
PACKET_NAMES = {
    1: "raw",
    3: "host_query",
    4: "host_reply",
    35: "truc",
    36: "connect",
    37: "tiny",
    38: "small",
    39: "medium_frag",
    40: "rndv",
    41: "pull_request",
    42: "pull_reply",
    43: "notify",
    44: "nack_lib",
    45: "nack_mcp",
}
NODE_PREFIX = bytes((0x02, 0x5A, 0, 0))


def node_address(index: int) -> bytes:
    """Hardware address of node `index`: locally administered, its index in the last bytes."""
    return NODE_PREFIX + index.to_bytes(2, "big")


TINY_MAX_BYTES = 32
SMALL_MAX_BYTES = 128
EAGER_MAX_BYTES = 32768
"""Longest message that is sent without asking the receiver first, if nothing else is wanted
(Open-MX's default of OMX_RNDV_THRESHOLD)."""

MEDIUM_OVERHEAD_BYTES = 48
PULL_REPLY_OVERHEAD_BYTES = 32
MTUS = (1500, 9000)
WIRE_FORMATS = ("native", "compatible")

# Packet types that can be marked latency-sensitive, by the name of the mark: the only, or the
# last, packet of each that the coalescing paper marks (III-B).
MARK_TYPES = {
    "tiny": 37,
    "small": 38,
    "medium": 39,
    "rndv": 40,
    "pull-request": 41,
    "pull-reply": 42,
    "notify": 43,
}


def marked_types(marks: Iterable[str]) -> int:
    """Bit mask by packet type of the marks named; InputError for an unknown one."""
    mask = 0
    for mark in marks:
        if mark not in MARK_TYPES:
            hint = did_you_mean(mark, MARK_TYPES)
            names = ", ".join(MARK_TYPES)
            raise InputError(f"there is no mark {mark!r}; the marks are {names}{hint}")
        mask |= 1 << MARK_TYPES[mark]
    return mask


class WireGeometry(NamedTuple):
    """How messages are cut into frames; struct wire_geometry of wire.h."""

    mtu_bytes: int
    medium_frag_bytes: int
    medium_frags_max: int
    pull_frame_bytes: int
    pull_block_frames: int
    compatible: bool

    @property
    def medium_max_bytes(self) -> int:
        """The longest message that can travel in medium fragments."""
        return self.medium_frag_bytes * self.medium_frags_max


def wire_geometry(mtu: int = 1500, wire_format: str = "native") -> WireGeometry:
    """The geometry of an MTU and a wire format, "native" or "compatible" (with MX firmware).

    Native medium fragments hold all that fits up to 4096 bytes, else 8192 if that fits, else
    4096; compatible frames hold 4096 bytes, 8 to a pull block, and need an MTU of 9000.
    """
    if mtu not in MTUS:
        raise InputError(f"mtu must be 1500 or 9000, not {mtu}")
    if wire_format not in WIRE_FORMATS:
        raise InputError(f"wire_format must be native or compatible, not {wire_format!r}")
    if wire_format == "compatible":
        if mtu != 9000:
            raise InputError(
                f"wire_format 'compatible' sends frames of 4096 bytes; it needs mtu 9000, not {mtu}"
            )
        return WireGeometry(mtu, 4096, 8, 4096, 8, True)
    room = mtu - MEDIUM_OVERHEAD_BYTES
    frag_bytes = room if room <= 4096 else 8192 if room >= 8192 else 4096
    return WireGeometry(mtu, frag_bytes, 32, mtu - PULL_REPLY_OVERHEAD_BYTES, 32, False)


def rndv_threshold(wanted_bytes: int, geometry: WireGeometry) -> int:
    """The longest eager message: what is wanted, but at least a small message and at most
    what medium fragments can carry (Open-MX's OMX_RNDV_THRESHOLD, clamped as there)."""
    return max(SMALL_MAX_BYTES, min(wanted_bytes, geometry.medium_max_bytes))
