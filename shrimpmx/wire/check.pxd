"""Checks a received frame before a length, offset or index in it is used.

The functions are inline in this file, since the receive handler calls them for every
packet. `decode()` in packets.py applies the same rules; a test holds the two together.
"""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.wire.wire cimport (
    PTYPE_CONNECT, PTYPE_HOST_QUERY, PTYPE_HOST_REPLY, PTYPE_MEDIUM_FRAG, PTYPE_NACK_LIB,
    PTYPE_NACK_MCP, PTYPE_NONE, PTYPE_NOTIFY, PTYPE_PULL_REPLY, PTYPE_PULL_REQUEST, PTYPE_RAW,
    PTYPE_RNDV, PTYPE_SMALL, PTYPE_TINY, PTYPE_TRUC, WIRE_COMPATIBLE_PIPELINE, WIRE_ETHERTYPE,
    WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, WIRE_HOST_MAGIC, WIRE_HOST_NAME_MAX_BYTES, WIRE_MARK,
    WIRE_TRUC_ACK, be16, be32, wire_connect, wire_geometry, wire_head, wire_host_reply, wire_medium,
    wire_medium_length, wire_message, wire_pull_reply, wire_pull_request,
    wire_pull_request_compatible, wire_raw, wire_rndv, wire_truc,
)


cdef enum frame_fault:
    FRAME_OK = 0
    FRAME_BAD_HEADER_DATALEN = 1  # too short for its header (or for any: 60 bytes)
    FRAME_BAD_DATALEN = 2         # a length or offset that this packet type cannot have
    FRAME_BAD_SKBLEN = 3          # data reaches beyond the frame, or the frame beyond the MTU
    FRAME_BAD_ETHERTYPE = 4
    FRAME_INVALID_TYPE = 5        # a type that no host receives: 0 and the NIC's own
    FRAME_UNKNOWN_TYPE = 6        # not an MXoE type
    FRAME_BAD_MAGIC = 7           # host query or reply with another magic number
    FRAME_FAULTS_COUNT = 8


cdef enum:
    TRUC_DATA_BYTES = 16          # wire_truc.length of a library acknowledgement
    CONNECT_DATA_BYTES = 16       # wire_connect.length
    TINY_DATA_MAX_BYTES = 32
    SMALL_DATA_MAX_BYTES = 128


cdef inline int _check_message(const uint8_t *header, uint32_t room, uint32_t limit) noexcept nogil:
    cdef uint32_t length = be16((<const wire_message *>header).length)
    if length > limit:
        return FRAME_BAD_DATALEN
    return FRAME_OK if length + sizeof(wire_message) <= room else FRAME_BAD_SKBLEN


cdef inline int _check_medium(const uint8_t *header, uint32_t room,
                              const wire_geometry *geometry) noexcept nogil:
    """Every fragment is full, but for the last: so a fragment's place and size follow from
    its number, and reassembly can trust them."""
    cdef const wire_medium *medium = <const wire_medium *>header
    cdef uint32_t full = geometry.medium_frag_bytes
    cdef uint32_t message_length = wire_medium_length(medium, geometry)
    cdef uint32_t frag_length = be16(medium.frag_length)
    cdef uint32_t offset = medium.frag_seqnum * full
    if geometry.compatible and medium.pipeline != WIRE_COMPATIBLE_PIPELINE:
        return FRAME_BAD_DATALEN
    if message_length > full * geometry.medium_frags_max or offset >= message_length:
        return FRAME_BAD_DATALEN
    if frag_length != (full if message_length - offset > full else message_length - offset):
        return FRAME_BAD_DATALEN
    return FRAME_OK if frag_length + sizeof(wire_medium) <= room else FRAME_BAD_SKBLEN


cdef inline int _check_truc(const uint8_t *header) noexcept nogil:
    cdef const wire_truc *truc = <const wire_truc *>header
    if truc.length != TRUC_DATA_BYTES or truc.type != WIRE_TRUC_ACK:
        return FRAME_BAD_DATALEN
    return FRAME_OK


cdef inline int _check_connect(const uint8_t *header) noexcept nogil:
    cdef const wire_connect *connect = <const wire_connect *>header
    if connect.length != CONNECT_DATA_BYTES or connect.is_reply > 1:
        return FRAME_BAD_DATALEN
    return FRAME_OK


cdef inline int _check_rndv(const uint8_t *header) noexcept nogil:
    """The message ends within the 32 bits that pull requests count in."""
    cdef const wire_rndv *rndv = <const wire_rndv *>header
    if be32(rndv.message_length) > <uint32_t>0xFFFFFFFF - be16(rndv.rdma_offset):
        return FRAME_BAD_DATALEN
    return FRAME_OK


cdef inline int _check_pull_request(const uint8_t *header,
                                    const wire_geometry *geometry) noexcept nogil:
    """A block has data, lies within its message and fills no more frames than a block may."""
    cdef const wire_pull_request *native = <const wire_pull_request *>header
    cdef const wire_pull_request_compatible *compatible
    cdef uint32_t full = geometry.pull_frame_bytes
    cdef uint32_t total = be32(native.total_length)
    cdef uint32_t offset, first, block
    if geometry.compatible:
        compatible = <const wire_pull_request_compatible *>header
        offset = be16(compatible.rdma_offset)
        first = be16(compatible.first_frame_offset)
        block = be16(compatible.block_length)
    else:
        offset = be32(native.rdma_offset)
        first = be32(native.first_frame_offset)
        block = be32(native.block_length)
    if total > <uint32_t>0xFFFFFFFF - offset or block == 0 or block > total or first >= full:
        return FRAME_BAD_DATALEN
    return FRAME_OK if block <= full * geometry.pull_block_frames - first else FRAME_BAD_DATALEN


cdef inline int _check_pull_reply(const uint8_t *header, uint32_t room,
                                  const wire_geometry *geometry) noexcept nogil:
    cdef const wire_pull_reply *reply = <const wire_pull_reply *>header
    cdef uint32_t length = be16(reply.frame_length)
    if length == 0 or length > geometry.pull_frame_bytes:
        return FRAME_BAD_DATALEN
    if be32(reply.message_offset) > <uint32_t>0xFFFFFFFF - length:
        return FRAME_BAD_DATALEN
    return FRAME_OK if length + sizeof(wire_pull_reply) <= room else FRAME_BAD_SKBLEN


cdef inline int _check_host(const uint8_t *header, uint32_t room, int ptype) noexcept nogil:
    cdef const wire_host_reply *reply = <const wire_host_reply *>header
    if be32(reply.magic) != <uint32_t>WIRE_HOST_MAGIC:
        return FRAME_BAD_MAGIC
    if ptype == PTYPE_HOST_QUERY:
        return FRAME_OK
    if reply.length > WIRE_HOST_NAME_MAX_BYTES:
        return FRAME_BAD_DATALEN
    return FRAME_OK if reply.length + sizeof(wire_host_reply) <= room else FRAME_BAD_SKBLEN


cdef inline int _check_raw(const uint8_t *header, uint32_t room) noexcept nogil:
    cdef uint32_t length = be16((<const wire_raw *>header).length)
    return FRAME_OK if length + sizeof(wire_raw) <= room else FRAME_BAD_SKBLEN


cdef inline int _check_type(int ptype) noexcept nogil:
    """For the types without a header of their own."""
    # 2 is the NIC reply, 32 to 34 are the NIC's Ethernet emulation: never between hosts.
    if ptype == PTYPE_NONE or ptype == 2 or 32 <= ptype <= 34:
        return FRAME_INVALID_TYPE
    return FRAME_UNKNOWN_TYPE


cdef inline int frame_check(const uint8_t *frame, uint32_t length,
                            const wire_geometry *geometry) noexcept nogil:
    """0 if every length, offset and type in `frame` can be believed, else a frame_fault.

    `length` is what was received, `geometry` the receiving node's. The mark is ignored. Endpoints,
    sessions and peers are for the caller to check.
    """
    cdef const uint8_t *header = frame + WIRE_HEAD_BYTES
    cdef uint32_t room = length - WIRE_HEAD_BYTES
    cdef int ptype
    if length < WIRE_FRAME_MIN_BYTES:
        return FRAME_BAD_HEADER_DATALEN
    if length > geometry.mtu_bytes:
        return FRAME_BAD_SKBLEN
    if (<const wire_head *>frame).ethertype != be16(WIRE_ETHERTYPE):
        return FRAME_BAD_ETHERTYPE
    ptype = header[0] & ~WIRE_MARK
    if ptype == PTYPE_TINY:
        return _check_message(header, room, TINY_DATA_MAX_BYTES)
    if ptype == PTYPE_SMALL:
        return _check_message(header, room, SMALL_DATA_MAX_BYTES)
    if ptype == PTYPE_MEDIUM_FRAG:
        return _check_medium(header, room, geometry)
    if ptype == PTYPE_TRUC:
        return _check_truc(header)
    if ptype == PTYPE_CONNECT:
        return _check_connect(header)
    if ptype == PTYPE_PULL_REPLY:
        return _check_pull_reply(header, room, geometry)
    if ptype == PTYPE_PULL_REQUEST:
        return _check_pull_request(header, geometry)
    if ptype == PTYPE_HOST_QUERY or ptype == PTYPE_HOST_REPLY:
        return _check_host(header, room, ptype)
    if ptype == PTYPE_RNDV:
        return _check_rndv(header)
    if ptype == PTYPE_RAW:
        return _check_raw(header, room)
    if ptype == PTYPE_NOTIFY or ptype == PTYPE_NACK_LIB or ptype == PTYPE_NACK_MCP:
        return FRAME_OK  # no length in them can be known bad without the message they name
    return _check_type(ptype)
