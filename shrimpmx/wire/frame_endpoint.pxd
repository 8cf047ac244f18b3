"""The endpoint that a frame is for, read from its header."""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.wire.wire cimport (
    PTYPE_NACK_LIB, PTYPE_NACK_MCP, PTYPE_NOTIFY, PTYPE_PULL_REPLY, PTYPE_PULL_REQUEST, PTYPE_TRUC,
    WIRE_ETHERTYPE, WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, WIRE_MARK, WIRE_PULL_MAGIC, be16, be32,
    wire_head, wire_message, wire_nack_lib, wire_nack_mcp, wire_pull_reply,
)


cdef enum:
    NO_ENDPOINT = -1


cdef inline int magic_endpoint(uint32_t magic) noexcept nogil:
    """The endpoint that pulls, of a pull's magic as it travels."""
    cdef uint32_t endpoint = be32(magic) ^ <uint32_t>WIRE_PULL_MAGIC
    return <int>endpoint if endpoint < 256 else NO_ENDPOINT


cdef inline int frame_endpoint(const uint8_t *frame, uint32_t length) noexcept nogil:
    """The endpoint that a frame is for, 0 to 255, or NO_ENDPOINT; the mark is ignored.

    A frame is untrusted. One shorter than Ethernet's shortest is no packet, and all headers lie
    within that, so nothing behind a frame's end is read.
    """
    cdef const uint8_t *header = frame + WIRE_HEAD_BYTES
    cdef int ptype
    if (length < WIRE_FRAME_MIN_BYTES
            or (<const wire_head *>frame).ethertype != be16(WIRE_ETHERTYPE)):
        return NO_ENDPOINT
    ptype = header[0] & ~WIRE_MARK
    if PTYPE_TRUC <= ptype <= PTYPE_PULL_REQUEST or ptype == PTYPE_NOTIFY:
        return (<const wire_message *>header).dst_endpoint   # all have it at the same place
    if ptype == PTYPE_PULL_REPLY:
        return magic_endpoint((<const wire_pull_reply *>header).dst_magic)
    if ptype == PTYPE_NACK_LIB:
        return (<const wire_nack_lib *>header).dst_endpoint
    if ptype == PTYPE_NACK_MCP:
        return magic_endpoint((<const wire_nack_mcp *>header).src_magic)
    return NO_ENDPOINT
