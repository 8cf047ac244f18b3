"""A packet in 64 bits, for the binary trace.

From the lowest bit: 8 bits of type with the mark, 8 of fragment number, 16 of the message's
sequence number (an acknowledgement's: the message awaited next), 16 of the source node, 16 of the
destination. A frame may be shorter than its type says: what is read lies in a ring slot
of at least 192 bytes, and a wrong number in a trace harms nobody.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.native.trace cimport trace_record, trace_ring
from shrimpmx.wire.wire cimport (
    PTYPE_MEDIUM_FRAG,
    PTYPE_NACK_LIB,
    PTYPE_TRUC,
    WIRE_HEAD_BYTES,
    WIRE_MARK,
    be16,
    wire_medium,
    wire_message,
    wire_nack_lib,
    wire_truc,
)


cdef inline uint64_t packet_word(const uint8_t *frame) noexcept nogil:
    cdef const uint8_t *header = frame + WIRE_HEAD_BYTES
    cdef int ptype = header[0] & ~WIRE_MARK
    cdef uint64_t fragment = 0
    cdef uint64_t seqnum = be16((<const wire_message *>header).lib_seqnum)
    cdef uint64_t source = <uint64_t>frame[10] << 8 | frame[11]
    cdef uint64_t destination = <uint64_t>frame[4] << 8 | frame[5]
    if ptype == PTYPE_MEDIUM_FRAG:
        fragment = (<const wire_medium *>header).frag_seqnum
    elif ptype == PTYPE_TRUC:
        seqnum = be16((<const wire_truc *>header).lib_seqnum)
    elif ptype == PTYPE_NACK_LIB:
        seqnum = be16((<const wire_nack_lib *>header).lib_seqnum)
    return header[0] | fragment << 8 | seqnum << 16 | source << 32 | destination << 48


cdef inline void trace_packet(trace_ring *trace, int64_t time_ns, uint32_t kind,
                              const uint8_t *frame, uint64_t b) noexcept nogil:
    """Record what happened to a packet; nothing when tracing is off."""
    if trace != NULL:
        trace_record(trace, time_ns, kind, packet_word(frame), b)
