"""From a send command's arguments to a packet's header: one function per packet type.

Inline, since the sender of every message calls one. `header` lies in a frame behind its
16-byte head, or in a local sender's own memory: a message to a rank of the same node has the
same header, and event_fill.pxd reads it on either way.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from shrimpmx.shared.layout cimport event_connect, node_header, node_mark
from shrimpmx.wire.check cimport CONNECT_DATA_BYTES, TRUC_DATA_BYTES
from shrimpmx.wire.wire cimport (
    PTYPE_CONNECT,
    PTYPE_MEDIUM_FRAG,
    PTYPE_NOTIFY,
    PTYPE_RNDV,
    PTYPE_TRUC,
    WIRE_COMPATIBLE_PIPELINE,
    WIRE_TRUC_ACK,
    be16,
    be32,
    wire_connect,
    wire_medium,
    wire_medium_length_field,
    wire_message,
    wire_notify,
    wire_rndv,
    wire_truc,
)

# Who sends to whom: what every header begins with.
cdef struct packet_route:
    const node_header *node
    uint32_t src_endpoint, dst_endpoint, session


cdef inline void put_message(wire_message *header, uint8_t ptype, const packet_route *route,
                             uint32_t seqnum, uint32_t piggyack, uint64_t match,
                             uint32_t length) noexcept nogil:
    """Tiny and small; the beginning of medium and rndv, whose mark is up to the caller."""
    header.ptype = ptype
    header.dst_endpoint = <uint8_t>route.dst_endpoint
    header.src_endpoint = <uint8_t>route.src_endpoint
    header.src_generation = 0
    header.length = be16(<uint16_t>length)
    header.checksum = 0
    header.lib_seqnum = be16(<uint16_t>seqnum)
    header.lib_piggyack = be16(<uint16_t>piggyack)
    header.match_a = be32(<uint32_t>(match >> 32))
    header.match_b = be32(<uint32_t>match)
    header.session = be32(route.session)


cdef inline bint is_latency_sensitive(const node_header *node, uint32_t message_length,
                                      uint32_t frag_seqnum) noexcept nogil:
    """Whether this fragment of a medium message is the one to mark.

    The last one (coalescing paper, III-B), or with `mark_early` X the one X before it (IV-C4); the
    first one of a message that has no X before its last.
    """
    cdef uint32_t frag_bytes = node.geometry.medium_frag_bytes
    cdef uint32_t ahead = (frag_seqnum + node.mark_early) * frag_bytes
    return message_length <= ahead + frag_bytes and (frag_seqnum == 0 or message_length > ahead)


cdef inline void put_medium(wire_medium *header, const packet_route *route, uint32_t seqnum,
                            uint32_t piggyack, uint64_t match, uint32_t message_length,
                            uint32_t frag_seqnum, uint32_t frag_length) noexcept nogil:
    cdef uint8_t mark = 0
    if is_latency_sensitive(route.node, message_length, frag_seqnum):
        mark = node_mark(route.node, PTYPE_MEDIUM_FRAG)
    put_message(<wire_message *>header, PTYPE_MEDIUM_FRAG | mark, route, seqnum, piggyack, match,
                message_length)
    header.length = wire_medium_length_field(message_length, &route.node.geometry)
    memset(&header.frag_length, 0, sizeof(wire_medium) - sizeof(wire_message))
    header.frag_length = be16(<uint16_t>frag_length)
    header.frag_seqnum = <uint8_t>frag_seqnum
    # MX's firmware wants the logarithm of the fragment size; Open-MX's own format has a pad.
    header.pipeline = WIRE_COMPATIBLE_PIPELINE if route.node.geometry.compatible else 0


cdef inline void put_rndv(wire_rndv *header, const packet_route *route, uint32_t seqnum,
                          uint32_t piggyack, uint64_t match, uint32_t message_length,
                          uint8_t rdma_id, uint8_t rdma_seqnum,
                          uint16_t rdma_offset) noexcept nogil:
    put_message(&header.message, PTYPE_RNDV | node_mark(route.node, PTYPE_RNDV), route, seqnum,
                piggyack, match, sizeof(wire_rndv) - sizeof(wire_message))
    header.message_length = be32(message_length)
    header.rdma_id = rdma_id
    header.rdma_seqnum = rdma_seqnum
    header.rdma_offset = be16(rdma_offset)


cdef inline void put_notify(wire_notify *header, const packet_route *route, uint32_t seqnum,
                            uint32_t piggyack, uint32_t transferred, uint8_t rdma_id,
                            uint8_t rdma_seqnum) noexcept nogil:
    memset(header, 0, sizeof(wire_notify))
    header.ptype = PTYPE_NOTIFY | node_mark(route.node, PTYPE_NOTIFY)
    header.dst_endpoint = <uint8_t>route.dst_endpoint
    header.src_endpoint = <uint8_t>route.src_endpoint
    header.session = be32(route.session)
    header.total_length = be32(transferred)
    header.rdma_id = rdma_id
    header.rdma_seqnum = rdma_seqnum
    header.lib_seqnum = be16(<uint16_t>seqnum)
    header.lib_piggyack = be16(<uint16_t>piggyack)


cdef inline void put_connect(wire_connect *header, const packet_route *route, uint32_t peer,
                             uint32_t lib_seqnum, const event_connect *data,
                             bint is_reply) noexcept nogil:
    memset(header, 0, sizeof(wire_connect))
    header.ptype = PTYPE_CONNECT
    header.dst_endpoint = <uint8_t>route.dst_endpoint
    header.src_endpoint = <uint8_t>route.src_endpoint
    header.length = CONNECT_DATA_BYTES
    header.lib_seqnum = be16(<uint16_t>lib_seqnum)
    header.src_dst_peer_index = be16(<uint16_t>peer)
    header.src_session_id = be32(data.src_session_id)
    header.key_or_session = be32(data.key_or_session)
    header.target_recv_seqnum_start = be16(data.target_recv_seqnum_start)
    header.is_reply = is_reply
    header.connect_seqnum = data.connect_seqnum
    header.status = data.status if is_reply else 0


cdef inline void put_liback(wire_truc *header, const packet_route *route, uint32_t lib_seqnum,
                            uint32_t session_id, uint32_t acknum, uint32_t send_seq,
                            uint32_t resent) noexcept nogil:
    memset(header, 0, sizeof(wire_truc))
    header.ptype = PTYPE_TRUC
    header.dst_endpoint = <uint8_t>route.dst_endpoint
    header.src_endpoint = <uint8_t>route.src_endpoint
    header.length = TRUC_DATA_BYTES
    header.session = be32(route.session)
    header.type = WIRE_TRUC_ACK
    header.lib_seqnum = be16(<uint16_t>lib_seqnum)
    header.session_id = be32(session_id)
    header.acknum = be32(acknum)
    header.send_seq = be16(<uint16_t>send_seq)
    header.resent = <uint8_t>resent
