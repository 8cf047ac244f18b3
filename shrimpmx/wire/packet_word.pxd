"""A packet in 64 bits, for the binary trace.

From the lowest bit: 8 bits of type with the mark, 8 of fragment number, 16 of the message's
sequence number (an acknowledgement's: the message awaited next; a pull request's: its first
frame), 16 of the source node, 16 of the destination. The fragment number of a pull reply is
that of its frame, modulo 256. A frame may be shorter than its type says: what is read lies in
a ring slot of at least 192 bytes, and a wrong number in a trace is harmless. Of another protocol's
packet only source and destination are told. A packet of SHRIMP's NIC has its kind as type, its
destination's endpoint in place of the fragment number, and its length in place of the message's.

The second value of its records has the endpoints in its highest bits: 8 bits of the destination's,
8 of the source's, each NO_END if the packet does not tell it.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.native.trace cimport trace_record, trace_ring
from shrimpmx.wire.vmmc cimport VMMC_ETHERTYPE, wire_vmmc
from shrimpmx.wire.wire cimport (
    PTYPE_MEDIUM_FRAG, PTYPE_NACK_LIB, PTYPE_NACK_MCP, PTYPE_NOTIFY, PTYPE_PULL_REPLY,
    PTYPE_PULL_REQUEST, PTYPE_TRUC, WIRE_ETHERTYPE, WIRE_HEAD_BYTES, WIRE_MARK, WIRE_PULL_MAGIC,
    be16, be32, wire_head, wire_medium, wire_message, wire_nack_lib, wire_nack_mcp, wire_notify,
    wire_pull_reply, wire_pull_request, wire_pull_request_compatible, wire_truc,
)


cdef enum:
    # Stand where an MXoE packet has its type.
    VMMC_WORD_TYPE = 0x78        # | enum vmmc_packet
    OTHER_WORD_TYPE = 0x7F
    NO_END = 0xFF


cdef inline uint32_t pull_frame_index(const uint8_t *header) noexcept nogil:
    """The first frame that a pull request asks for; the formats differ in where the magic lies."""
    cdef const wire_pull_request *native = <const wire_pull_request *>header
    if (be32(native.src_magic) ^ <uint32_t>WIRE_PULL_MAGIC) < 256:
        return be32(native.frame_index)
    return be32((<const wire_pull_request_compatible *>header).frame_index)


cdef inline uint64_t vmmc_word(const wire_vmmc *header) noexcept nogil:
    return (VMMC_WORD_TYPE | header.packet & 3 | <uint64_t>header.dst_endpoint << 8
            | <uint64_t>be16(header.length) << 16)


cdef inline uint64_t packet_word(const uint8_t *frame) noexcept nogil:
    cdef const uint8_t *header = frame + WIRE_HEAD_BYTES
    cdef int ptype = header[0] & ~WIRE_MARK
    cdef uint64_t fragment = 0
    cdef uint64_t seqnum = be16((<const wire_message *>header).lib_seqnum)
    cdef uint64_t source = <uint64_t>frame[10] << 8 | frame[11]
    cdef uint64_t destination = <uint64_t>frame[4] << 8 | frame[5]
    if (<const wire_head *>frame).ethertype == be16(VMMC_ETHERTYPE):
        return vmmc_word(<const wire_vmmc *>header) | source << 32 | destination << 48
    if (<const wire_head *>frame).ethertype != be16(WIRE_ETHERTYPE):
        return OTHER_WORD_TYPE | source << 32 | destination << 48
    if ptype == PTYPE_MEDIUM_FRAG:
        fragment = (<const wire_medium *>header).frag_seqnum
    elif ptype == PTYPE_TRUC:
        seqnum = be16((<const wire_truc *>header).lib_seqnum)
    elif ptype == PTYPE_NACK_LIB:
        seqnum = be16((<const wire_nack_lib *>header).lib_seqnum)
    elif ptype == PTYPE_NOTIFY:
        seqnum = be16((<const wire_notify *>header).lib_seqnum)
    elif ptype == PTYPE_PULL_REQUEST:
        seqnum = pull_frame_index(header) & 0xFFFF
    elif ptype == PTYPE_PULL_REPLY:
        seqnum = 0
        fragment = (<const wire_pull_reply *>header).frame_seqnum
    elif ptype == PTYPE_NACK_MCP:
        seqnum = 0
    return header[0] | fragment << 8 | seqnum << 16 | source << 32 | destination << 48


cdef inline uint64_t packet_ends(const uint8_t *frame) noexcept nogil:
    """The endpoints of a packet, where its records have them."""
    cdef const uint8_t *header = frame + WIRE_HEAD_BYTES
    cdef int ptype = header[0] & ~WIRE_MARK
    cdef uint64_t destination = NO_END, source = NO_END
    cdef uint32_t magic
    if (<const wire_head *>frame).ethertype != be16(WIRE_ETHERTYPE):
        return destination << 48 | source << 56
    if ptype == PTYPE_PULL_REPLY:
        magic = be32((<const wire_pull_reply *>header).dst_magic) ^ <uint32_t>WIRE_PULL_MAGIC
        destination = min(magic, <uint32_t>NO_END)
    elif ptype == PTYPE_NACK_LIB:
        destination = (<const wire_nack_lib *>header).dst_endpoint
        source = (<const wire_nack_lib *>header).src_endpoint
    elif ptype == PTYPE_NACK_MCP:
        source = (<const wire_nack_mcp *>header).src_endpoint
    else:  # every other one begins with them
        destination = (<const wire_message *>header).dst_endpoint
        source = (<const wire_message *>header).src_endpoint
    return destination << 48 | source << 56


cdef inline void trace_packet(trace_ring *trace, int64_t time_ns, uint32_t kind,
                              const uint8_t *frame, uint64_t b) noexcept nogil:
    """Record what happened to a packet; nothing when tracing is off."""
    if trace != NULL:
        trace_record(trace, time_ns, kind, packet_word(frame), b | packet_ends(frame))
