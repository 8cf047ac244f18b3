"""MXoE frames as they travel; see wire.h."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef extern from "wire/wire.h" nogil:
    enum:
        WIRE_ETHERTYPE
        WIRE_HEAD_BYTES
        WIRE_FRAME_MIN_BYTES
        WIRE_MARK
        WIRE_TRUC_ACK
        WIRE_NO_PEER
        WIRE_HOST_MAGIC
        WIRE_HOST_NAME_MAX_BYTES
        WIRE_PULL_MAGIC
        WIRE_COMPATIBLE_PIPELINE
    enum:
        PTYPE_NONE
        PTYPE_RAW
        PTYPE_HOST_QUERY
        PTYPE_HOST_REPLY
        PTYPE_TRUC
        PTYPE_CONNECT
        PTYPE_TINY
        PTYPE_SMALL
        PTYPE_MEDIUM_FRAG
        PTYPE_RNDV
        PTYPE_PULL_REQUEST
        PTYPE_PULL_REPLY
        PTYPE_NOTIFY
        PTYPE_NACK_LIB
        PTYPE_NACK_MCP
        PTYPE_COUNT
    enum:
        NACK_NONE
        NACK_BAD_ENDPOINT
        NACK_ENDPOINT_CLOSED
        NACK_BAD_SESSION
        NACK_BAD_REGION
    enum:
        CONNECT_OK
        CONNECT_BAD_KEY
    cdef struct wire_head:
        uint8_t destination[6]
        uint8_t source[6]
        uint16_t ethertype
        uint16_t dst_src_peer_index
    cdef struct wire_truc:
        uint8_t ptype, dst_endpoint, src_endpoint, src_generation
        uint8_t length
        uint32_t session
        uint8_t type
        uint16_t lib_seqnum
        uint32_t session_id
        uint32_t acknum
        uint16_t send_seq
        uint8_t resent
    cdef struct wire_connect:
        uint8_t ptype, dst_endpoint, src_endpoint, src_generation
        uint8_t length
        uint16_t lib_seqnum
        uint16_t src_dst_peer_index
        uint32_t src_session_id
        uint32_t key_or_session
        uint16_t target_recv_seqnum_start
        uint8_t is_reply, connect_seqnum
        uint8_t status
    cdef struct wire_message:
        uint8_t ptype, dst_endpoint, src_endpoint, src_generation
        uint16_t length, checksum
        uint16_t lib_seqnum, lib_piggyack
        uint32_t match_a, match_b
        uint32_t session
    cdef struct wire_medium:
        uint8_t ptype, dst_endpoint, src_endpoint, src_generation
        uint32_t length
        uint16_t lib_seqnum, lib_piggyack
        uint32_t match_a, match_b
        uint32_t session
        uint16_t frag_length
        uint8_t frag_seqnum, pipeline
        uint16_t checksum
    cdef struct wire_rndv:
        wire_message message
        uint32_t message_length
        uint8_t rdma_id, rdma_seqnum
        uint16_t rdma_offset
    cdef struct wire_pull_request:
        uint8_t ptype, dst_endpoint, src_endpoint, src_generation
        uint32_t session
        uint32_t total_length
        uint32_t rdma_id
        uint8_t rdma_seqnum
        uint32_t rdma_offset
        uint32_t src_pull_handle, src_magic
        uint32_t first_frame_offset, block_length, frame_index
    cdef struct wire_pull_request_compatible:
        uint8_t ptype, dst_endpoint, src_endpoint, src_generation
        uint32_t session
        uint32_t total_length
        uint8_t rdma_id, rdma_seqnum
        uint16_t rdma_offset
        uint32_t src_pull_handle, src_magic
        uint16_t first_frame_offset, block_length
        uint32_t frame_index
    cdef struct wire_geometry:
        uint32_t mtu_bytes
        uint32_t medium_frag_bytes
        uint32_t medium_frags_max
        uint32_t pull_frame_bytes
        uint32_t pull_block_frames
        uint32_t compatible
    cdef struct wire_pull_reply:
        uint8_t ptype, frame_seqnum
        uint16_t frame_length
        uint32_t message_offset
        uint32_t dst_pull_handle, dst_magic
    cdef struct wire_notify:
        uint8_t ptype, dst_endpoint, src_endpoint, src_generation
        uint32_t session
        uint32_t total_length
        uint8_t rdma_id, rdma_seqnum
        uint16_t lib_seqnum, lib_piggyack
    cdef struct wire_nack_lib:
        uint8_t ptype, src_endpoint, src_generation, nack_type
        uint8_t dst_endpoint
        uint16_t dst_src_peer_index, lib_seqnum
    cdef struct wire_nack_mcp:
        uint8_t ptype, src_endpoint, src_generation, nack_type
        uint32_t src_pull_handle, src_magic
    cdef struct wire_host_query:
        uint8_t ptype
        uint16_t src_dst_peer_index
        uint32_t magic
    cdef struct wire_host_reply:
        uint8_t ptype, length
        uint16_t src_dst_peer_index
        uint32_t magic
    cdef struct wire_raw:
        uint8_t ptype
        uint16_t length
    uint16_t be16(uint16_t value) noexcept
    uint32_t be32(uint32_t value) noexcept
    uint32_t wire_medium_length_field(uint32_t length, const wire_geometry *geometry) noexcept
    uint32_t wire_medium_length(const wire_medium *medium,
                                const wire_geometry *geometry) noexcept


# -- The mark of a frame, as the firmware looks for it (coalescing paper, III-B).

cdef inline bint frame_marked(const uint8_t *frame) noexcept nogil:
    """Whether a frame of at least 17 bytes is marked; in other protocols the bit means nothing."""
    return ((<const wire_head *>frame).ethertype == be16(WIRE_ETHERTYPE)
            and frame[WIRE_HEAD_BYTES] & WIRE_MARK != 0)


# -- The endpoint that a frame is for, read from its header.

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
