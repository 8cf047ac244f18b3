"""From a packet's header and data to the event that tells the library of it.

One function per packet type and fill_packet(), which chooses; inline since the receive handler
and the local sender call one for every packet. The header was checked by frame_check() or
written on this node: its lengths can be believed. Each returns the type of the event.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.native.copy cimport copy_bytes
from shrimpmx.shared.layout cimport (
    EVENT_CONNECT_REPLY, EVENT_CONNECT_REQUEST, EVENT_LIBACK, EVENT_MEDIUM_FRAG, EVENT_NACK_LIB,
    EVENT_NOTIFY, EVENT_PULL_DONE, EVENT_RNDV, EVENT_SMALL, EVENT_TINY, EVENT_UNREADABLE,
    TINY_MAX_BYTES, event,
)
from shrimpmx.wire.wire cimport (
    PTYPE_CONNECT, PTYPE_MEDIUM_FRAG, PTYPE_NOTIFY, PTYPE_RNDV, PTYPE_SMALL, PTYPE_TINY, PTYPE_TRUC,
    be16, be32, wire_connect, wire_geometry, wire_medium, wire_medium_length, wire_message,
    wire_nack_lib, wire_notify, wire_rndv, wire_truc,
)


cdef inline void fill_message(event *e, const wire_message *header) noexcept nogil:
    """The fields that tiny, small and medium share; header has the same ones for medium."""
    e.seqnum = be16(header.lib_seqnum)
    e.piggyack = be16(header.lib_piggyack)
    e.match_info = (<uint64_t>be32(header.match_a) << 32) | be32(header.match_b)


cdef inline uint8_t fill_tiny(event *e, const uint8_t *header) noexcept nogil:
    cdef const wire_message *message = <const wire_message *>header
    fill_message(e, message)
    e.tiny.checksum = be16(message.checksum)
    e.tiny.length = <uint8_t>be16(message.length)
    # All 32 bytes whatever the length: a copy of fixed size is a few instructions.
    memcpy(e.tiny.data, header + sizeof(wire_message), TINY_MAX_BYTES)
    return EVENT_TINY


cdef inline uint8_t fill_small(event *e, const uint8_t *header, uint8_t *recvq,
                               uint32_t offset) noexcept nogil:
    cdef const wire_message *message = <const wire_message *>header
    cdef uint32_t length = be16(message.length)
    fill_message(e, message)
    e.small.recvq_offset = offset
    e.small.length = <uint16_t>length
    e.small.checksum = be16(message.checksum)
    memcpy(recvq + offset, header + sizeof(wire_message), 64)
    if length > 64:
        memcpy(recvq + offset + 64, header + sizeof(wire_message) + 64, 64)
    return EVENT_SMALL


cdef inline uint8_t fill_medium(event *e, const uint8_t *header, const uint8_t *data,
                                uint8_t *recvq, uint32_t offset,
                                const wire_geometry *geometry) noexcept nogil:
    """`data`: the fragment's, behind the header in a frame, in the sender's memory if local."""
    cdef const wire_medium *medium = <const wire_medium *>header
    cdef uint32_t length = be16(medium.frag_length)
    fill_message(e, <const wire_message *>header)
    e.medium.recvq_offset = offset
    e.medium.message_length = wire_medium_length(medium, geometry)
    e.medium.frag_length = <uint16_t>length
    e.medium.frag_seqnum = medium.frag_seqnum
    e.medium.pipeline = medium.pipeline
    e.medium.checksum = be16(medium.checksum)
    copy_bytes(recvq + offset, data, length)
    return EVENT_MEDIUM_FRAG


cdef inline uint8_t fill_rndv(event *e, const uint8_t *header) noexcept nogil:
    cdef const wire_rndv *rndv = <const wire_rndv *>header
    fill_message(e, &rndv.message)
    e.rndv.message_length = be32(rndv.message_length)
    e.rndv.rdma_id = rndv.rdma_id
    e.rndv.rdma_seqnum = rndv.rdma_seqnum
    e.rndv.rdma_offset = be16(rndv.rdma_offset)
    return EVENT_RNDV


cdef inline uint8_t fill_notify(event *e, const uint8_t *header) noexcept nogil:
    cdef const wire_notify *notify = <const wire_notify *>header
    e.seqnum = be16(notify.lib_seqnum)
    e.piggyack = be16(notify.lib_piggyack)
    e.match_info = 0
    e.notify.transferred = be32(notify.total_length)
    e.notify.rdma_id = notify.rdma_id
    e.notify.rdma_seqnum = notify.rdma_seqnum
    return EVENT_NOTIFY


cdef inline uint8_t fill_liback(event *e, const uint8_t *header) noexcept nogil:
    cdef const wire_truc *truc = <const wire_truc *>header
    e.seqnum = e.piggyack = 0
    e.match_info = 0
    e.liback.session_id = be32(truc.session_id)
    e.liback.acknum = be32(truc.acknum)
    e.liback.lib_seqnum = be16(truc.lib_seqnum)
    e.liback.send_seq = be16(truc.send_seq)
    e.liback.resent = truc.resent
    return EVENT_LIBACK


cdef inline uint8_t fill_connect(event *e, const uint8_t *header) noexcept nogil:
    cdef const wire_connect *connect = <const wire_connect *>header
    e.seqnum = be16(connect.lib_seqnum)
    e.piggyack = 0
    e.match_info = 0
    e.connect.src_session_id = be32(connect.src_session_id)
    e.connect.key_or_session = be32(connect.key_or_session)
    e.connect.target_recv_seqnum_start = be16(connect.target_recv_seqnum_start)
    e.connect.connect_seqnum = connect.connect_seqnum
    e.connect.status = connect.status
    return EVENT_CONNECT_REPLY if connect.is_reply else EVENT_CONNECT_REQUEST


cdef inline uint8_t fill_nack(event *e, const uint8_t *header) noexcept nogil:
    cdef const wire_nack_lib *nack = <const wire_nack_lib *>header
    e.seqnum = be16(nack.lib_seqnum)
    e.piggyack = 0
    e.match_info = 0
    e.nack.lib_seqnum = be16(nack.lib_seqnum)
    e.nack.nack_type = nack.nack_type
    return EVENT_NACK_LIB


cdef inline uint8_t fill_pull_done(event *e, uint32_t peer, uint32_t endpoint, uint64_t cookie,
                                   uint32_t transferred, uint8_t status) noexcept nogil:
    """The end of a pull; `peer`, `endpoint`: from where data was pulled. No packet brings it."""
    e.peer_index = <uint16_t>peer
    e.src_endpoint = <uint8_t>endpoint
    e.seqnum = e.piggyack = 0
    e.match_info = 0
    e.pull_done.cookie = cookie
    e.pull_done.transferred = transferred
    e.pull_done.status = status
    return EVENT_PULL_DONE


cdef inline uint8_t fill_unreadable(event *e, uint32_t id, uint32_t use) noexcept nogil:
    """Use `use` of region `id` cannot be read. No packet brings it."""
    e.peer_index = e.src_endpoint = 0
    e.seqnum = e.piggyack = 0
    e.match_info = 0
    e.unreadable.rdma_id = <uint8_t>id
    e.unreadable.rdma_seqnum = <uint8_t>use
    return EVENT_UNREADABLE


cdef inline uint8_t fill_packet(event *e, int ptype, const uint8_t *header, const uint8_t *data,
                                uint8_t *recvq, uint32_t offset,
                                const wire_geometry *geometry) noexcept nogil:
    """The event of any packet for a library; `data`: a medium fragment's, else not used."""
    e.src_endpoint = header[2]
    if ptype == PTYPE_TINY:
        return fill_tiny(e, header)
    if ptype == PTYPE_SMALL:
        return fill_small(e, header, recvq, offset)
    if ptype == PTYPE_MEDIUM_FRAG:
        return fill_medium(e, header, data, recvq, offset, geometry)
    if ptype == PTYPE_TRUC:
        return fill_liback(e, header)
    if ptype == PTYPE_RNDV:
        return fill_rndv(e, header)
    if ptype == PTYPE_NOTIFY:
        return fill_notify(e, header)
    if ptype == PTYPE_CONNECT:
        return fill_connect(e, header)
    e.src_endpoint = (<const wire_nack_lib *>header).src_endpoint
    return fill_nack(e, header)
