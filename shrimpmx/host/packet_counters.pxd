"""What is counted of a frame that arrives: why it is dropped, or as what it is taken.

Inline, since the receive handler asks for every packet; and the session that a packet names.
"""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.shared.layout cimport (
    COUNTER_drop_bad_datalen, COUNTER_drop_bad_ethertype, COUNTER_drop_bad_header_datalen,
    COUNTER_drop_bad_skblen, COUNTER_drop_host_query_bad_magic, COUNTER_drop_host_reply_bad_magic,
    COUNTER_drop_invalid_type, COUNTER_drop_unknown_type, COUNTER_recv_connect_reply,
    COUNTER_recv_connect_request, COUNTER_recv_liback, COUNTER_recv_medium_frag,
    COUNTER_recv_nack_lib, COUNTER_recv_notify, COUNTER_recv_rndv, COUNTER_recv_small,
    COUNTER_recv_tiny,
)
from shrimpmx.wire.check cimport (
    FRAME_BAD_DATALEN, FRAME_BAD_ETHERTYPE, FRAME_BAD_HEADER_DATALEN, FRAME_BAD_MAGIC,
    FRAME_BAD_SKBLEN, FRAME_INVALID_TYPE,
)
from shrimpmx.wire.wire cimport (
    PTYPE_HOST_QUERY, PTYPE_MEDIUM_FRAG, PTYPE_NACK_LIB, PTYPE_NOTIFY, PTYPE_RNDV, PTYPE_SMALL,
    PTYPE_TINY, PTYPE_TRUC, WIRE_HEAD_BYTES, WIRE_MARK, wire_connect, wire_message, wire_notify,
    wire_truc,
)


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
