"""The receive handler's check of a frame, as Python sees it; the rules stand in check.pxd."""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.wire.check cimport frame_check
from shrimpmx.wire.wire cimport wire_geometry

from shrimpmx.wire import tables

_FAULTS = (
    "",
    "bad_header_datalen",
    "bad_datalen",
    "bad_skblen",
    "bad_ethertype",
    "invalid_type",
    "unknown_type",
    "bad_magic",
)


def check(bytes frame not None, mtu=1500, wire_format="native") -> str:
    """The fault of a received frame as the drop counters name it, "" if there is none.

    Args:
        frame: the whole frame, from its Ethernet head.
        mtu: largest frame, bytes; 1500 or 9000.
        wire_format: "native" or "compatible".
    """
    wanted = tables.wire_geometry(mtu, wire_format)
    cdef wire_geometry geometry
    geometry.mtu_bytes = wanted.mtu_bytes
    geometry.medium_frag_bytes = wanted.medium_frag_bytes
    geometry.medium_frags_max = wanted.medium_frags_max
    geometry.pull_frame_bytes = wanted.pull_frame_bytes
    geometry.pull_block_frames = wanted.pull_block_frames
    geometry.compatible = wanted.compatible
    return _FAULTS[frame_check(<const uint8_t *>frame, <uint32_t>len(frame), &geometry)]
