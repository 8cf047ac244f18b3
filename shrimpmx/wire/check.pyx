"""The receive handler's check of a frame, as Python sees it; the rules stand in check.pxd."""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.wire.check cimport frame_check

_FAULTS = (
    "",
    "bad_header_datalen",
    "bad_datalen",
    "bad_skblen",
    "bad_ethertype",
    "invalid_type",
    "unknown_type",
    "nosys_type",
    "bad_magic",
)


def check(bytes frame not None, uint32_t mtu=1500) -> str:
    """The fault of a received frame as the drop counters name it, "" if there is none.

    Args:
        frame: the whole frame, from its Ethernet head.
        mtu: largest frame, bytes; 1500 or 9000.
    """
    return _FAULTS[frame_check(<const uint8_t *>frame, <uint32_t>len(frame), mtu)]
