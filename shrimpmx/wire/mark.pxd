"""The mark of a frame, as the firmware looks for it (coalescing paper, III-B)."""

from libc.stdint cimport uint8_t

from shrimpmx.wire.wire cimport WIRE_ETHERTYPE, WIRE_HEAD_BYTES, WIRE_MARK, be16, wire_head


cdef inline bint frame_marked(const uint8_t *frame) noexcept nogil:
    """Whether a frame of at least 17 bytes is marked; in other protocols the bit means nothing."""
    return ((<const wire_head *>frame).ethertype == be16(WIRE_ETHERTYPE)
            and frame[WIRE_HEAD_BYTES] & WIRE_MARK != 0)
