"""What is counted of a frame that arrives, and the handler of the other protocol."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.host.endpoint cimport TransmitPort, transmit_commit, transmit_prepare
from shrimpmx.shared.layout cimport (
    COUNTER_drop_bad_datalen, COUNTER_drop_bad_ethertype, COUNTER_drop_bad_header_datalen,
    COUNTER_drop_bad_skblen, COUNTER_drop_host_query_bad_magic, COUNTER_drop_host_reply_bad_magic,
    COUNTER_drop_invalid_type, COUNTER_drop_unknown_type, COUNTER_recv_connect_reply,
    COUNTER_recv_connect_request, COUNTER_recv_liback, COUNTER_recv_medium_frag,
    COUNTER_recv_nack_lib, COUNTER_recv_notify, COUNTER_recv_other, COUNTER_recv_other_bytes,
    COUNTER_recv_other_delay_ns, COUNTER_recv_rndv, COUNTER_recv_small, COUNTER_recv_tiny,
)
from shrimpmx.wire.check cimport (
    FRAME_BAD_DATALEN, FRAME_BAD_ETHERTYPE, FRAME_BAD_HEADER_DATALEN, FRAME_BAD_MAGIC,
    FRAME_BAD_SKBLEN, FRAME_INVALID_TYPE,
)
from shrimpmx.wire.other_packet cimport is_other_packet, other_answer, other_is_answered, wire_other
from shrimpmx.wire.wire cimport (
    PTYPE_HOST_QUERY, PTYPE_MEDIUM_FRAG, PTYPE_NACK_LIB, PTYPE_NOTIFY, PTYPE_RNDV, PTYPE_SMALL,
    PTYPE_TINY, PTYPE_TRUC, WIRE_HEAD_BYTES, WIRE_MARK, wire_connect, wire_message, wire_notify,
    wire_truc,
)

# -- What is counted of a frame that arrives: why it is dropped, or as what it is taken.
#
# Inline, since the receive handler asks for every packet; and the session that a packet names.

cdef inline uint32_t fault_counter(int fault, const uint8_t *frame) noexcept nogil:
    """The drop counter of a frame_fault of `frame`."""
    if fault == FRAME_BAD_HEADER_DATALEN:
        return COUNTER_drop_bad_header_datalen
    if fault == FRAME_BAD_DATALEN:
        return COUNTER_drop_bad_datalen
    if fault == FRAME_BAD_SKBLEN:
        return COUNTER_drop_bad_skblen
    if fault == FRAME_BAD_ETHERTYPE:
        return COUNTER_drop_bad_ethertype
    if fault == FRAME_INVALID_TYPE:
        return COUNTER_drop_invalid_type
    if fault == FRAME_BAD_MAGIC:
        return (COUNTER_drop_host_query_bad_magic
                if frame[WIRE_HEAD_BYTES] & ~WIRE_MARK == PTYPE_HOST_QUERY
                else COUNTER_drop_host_reply_bad_magic)
    return COUNTER_drop_unknown_type


cdef inline uint32_t packet_session(const uint8_t *header, int ptype) noexcept nogil:
    """The session in a packet that has one, network byte order as on the wire."""
    if ptype == PTYPE_TRUC:
        return (<const wire_truc *>header).session
    if ptype == PTYPE_NOTIFY:
        return (<const wire_notify *>header).session
    return (<const wire_message *>header).session


cdef inline uint32_t type_counter(const uint8_t *header, int ptype) noexcept nogil:
    """What counts the arrival of a packet that became an event."""
    if ptype == PTYPE_SMALL:
        return COUNTER_recv_small
    if ptype == PTYPE_TINY:
        return COUNTER_recv_tiny
    if ptype == PTYPE_MEDIUM_FRAG:
        return COUNTER_recv_medium_frag
    if ptype == PTYPE_TRUC:
        return COUNTER_recv_liback
    if ptype == PTYPE_RNDV:
        return COUNTER_recv_rndv
    if ptype == PTYPE_NOTIFY:
        return COUNTER_recv_notify
    if ptype == PTYPE_NACK_LIB:
        return COUNTER_recv_nack_lib
    return (COUNTER_recv_connect_reply if (<const wire_connect *>header).is_reply
            else COUNTER_recv_connect_request)


# -- The handler of the other protocol: stands for the IP stack of the host.
#
# It takes a packet and counts it, and how long the packet has waited in host memory, which is what
# coalescing does to it; it answers one whose sender waits for that. Inline: it is called for what
# frame_check has found not to be MXoE.

cdef inline bint other_packet(uint64_t *counters, const uint8_t *frame, uint32_t length,
                              int64_t waited_ns) noexcept nogil:
    """Take a frame that is not MXoE, if it is one of ours; false: it is to be dropped.

    `waited_ns` below 0, of a frame that came after the step began, counts as 0.
    """
    if not is_other_packet(frame, length):
        return False
    counters[COUNTER_recv_other] += 1
    counters[COUNTER_recv_other_bytes] += length
    if waited_ns > 0:
        counters[COUNTER_recv_other_delay_ns] += <uint64_t>waited_ns
    return True


cdef inline bint answer_other(TransmitPort *port, const uint8_t *frame) noexcept nogil:
    """Answer a packet that was taken, if its sender waits for that; whether it is on its way. With
    a full tx ring it is not: the answer to a later packet stands for it.
    """
    cdef uint8_t *answer
    if not other_is_answered(frame):
        return False
    # By the source's last bytes, a node's index (node_address).
    answer = transmit_prepare(port, <uint32_t>frame[10] << 8 | frame[11])
    if answer == NULL:
        return False
    other_answer(answer, frame)
    transmit_commit(port, sizeof(wire_other))
    return True
