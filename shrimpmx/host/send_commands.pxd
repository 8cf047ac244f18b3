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
    PTYPE_CONNECT, PTYPE_MEDIUM_FRAG, PTYPE_NOTIFY, PTYPE_RNDV, PTYPE_TRUC,
    WIRE_COMPATIBLE_PIPELINE, WIRE_TRUC_ACK, be16, be32, wire_connect, wire_medium,
    wire_medium_length_field, wire_message, wire_notify, wire_rndv, wire_truc,
)

# The endpoint that sends: the same in all of its packets.
cdef struct packet_source:
    const node_header *node
    uint32_t endpoint

# The target of a packet and where it belongs among others (MPI: the message envelope). The library
# fills it once, for all packets of a message.
cdef struct Envelope:
    uint32_t peer            # the target's node, the NIC's index of it
    uint32_t dst_endpoint
    uint32_t session         # of the target; 0 in a connect
    uint16_t seqnum
    uint16_t piggyack        # tiny to notify only
    uint64_t match           # tiny to rndv only


cdef inline void put_message(wire_message *header, uint8_t ptype, const packet_source *source,
                             const Envelope *envelope, uint32_t length) noexcept nogil:
    """Tiny and small; the beginning of medium and rndv, whose mark is up to the caller."""
    header.ptype = ptype
    header.dst_endpoint = <uint8_t>envelope.dst_endpoint
    header.src_endpoint = <uint8_t>source.endpoint
    header.src_generation = 0
    header.length = be16(<uint16_t>length)
    header.checksum = 0
    header.lib_seqnum = be16(envelope.seqnum)
    header.lib_piggyack = be16(envelope.piggyack)
    header.match_a = be32(<uint32_t>(envelope.match >> 32))
    header.match_b = be32(<uint32_t>envelope.match)
    header.session = be32(envelope.session)


cdef inline bint is_latency_sensitive(const node_header *node, uint32_t message_length,
                                      uint32_t frag_seqnum) noexcept nogil:
    """Whether this fragment of a medium message is the one to mark.

    The last one (coalescing paper, III-B), or with `mark_early` X the one X before it (IV-C4); the
    first one of a message that has no X before its last.
    """
    cdef uint32_t frag_bytes = node.geometry.medium_frag_bytes
    cdef uint32_t ahead = (frag_seqnum + node.mark_early) * frag_bytes
    return message_length <= ahead + frag_bytes and (frag_seqnum == 0 or message_length > ahead)


cdef inline void put_medium(wire_medium *header, const packet_source *source,
                            const Envelope *envelope, uint32_t message_length,
                            uint32_t frag_seqnum, uint32_t frag_length) noexcept nogil:
    cdef uint8_t mark = 0
    if is_latency_sensitive(source.node, message_length, frag_seqnum):
        mark = node_mark(source.node, PTYPE_MEDIUM_FRAG)
    put_message(<wire_message *>header, PTYPE_MEDIUM_FRAG | mark, source, envelope, message_length)
    header.length = wire_medium_length_field(message_length, &source.node.geometry)
    memset(&header.frag_length, 0, sizeof(wire_medium) - sizeof(wire_message))
    header.frag_length = be16(<uint16_t>frag_length)
    header.frag_seqnum = <uint8_t>frag_seqnum
    # MX's firmware wants the logarithm of the fragment size; Open-MX's own format has a pad.
    header.pipeline = WIRE_COMPATIBLE_PIPELINE if source.node.geometry.compatible else 0


cdef inline void put_rndv(wire_rndv *header, const packet_source *source,
                          const Envelope *envelope, uint32_t message_length, uint8_t rdma_id,
                          uint8_t rdma_seqnum, uint16_t rdma_offset) noexcept nogil:
    put_message(&header.message, PTYPE_RNDV | node_mark(source.node, PTYPE_RNDV), source, envelope,
                sizeof(wire_rndv) - sizeof(wire_message))
    header.message_length = be32(message_length)
    header.rdma_id = rdma_id
    header.rdma_seqnum = rdma_seqnum
    header.rdma_offset = be16(rdma_offset)


cdef inline void put_notify(wire_notify *header, const packet_source *source,
                            const Envelope *envelope, uint32_t transferred, uint8_t rdma_id,
                            uint8_t rdma_seqnum) noexcept nogil:
    memset(header, 0, sizeof(wire_notify))
    header.ptype = PTYPE_NOTIFY | node_mark(source.node, PTYPE_NOTIFY)
    header.dst_endpoint = <uint8_t>envelope.dst_endpoint
    header.src_endpoint = <uint8_t>source.endpoint
    header.session = be32(envelope.session)
    header.total_length = be32(transferred)
    header.rdma_id = rdma_id
    header.rdma_seqnum = rdma_seqnum
    header.lib_seqnum = be16(envelope.seqnum)
    header.lib_piggyack = be16(envelope.piggyack)


cdef inline void put_connect(wire_connect *header, const packet_source *source,
                             const Envelope *envelope, const event_connect *data,
                             bint is_reply) noexcept nogil:
    memset(header, 0, sizeof(wire_connect))
    header.ptype = PTYPE_CONNECT
    header.dst_endpoint = <uint8_t>envelope.dst_endpoint
    header.src_endpoint = <uint8_t>source.endpoint
    header.length = CONNECT_DATA_BYTES
    header.lib_seqnum = be16(envelope.seqnum)
    header.src_dst_peer_index = be16(<uint16_t>envelope.peer)
    header.src_session_id = be32(data.src_session_id)
    header.key_or_session = be32(data.key_or_session)
    header.target_recv_seqnum_start = be16(data.target_recv_seqnum_start)
    header.is_reply = is_reply
    header.connect_seqnum = data.connect_seqnum
    header.status = data.status if is_reply else 0


cdef inline void put_liback(wire_truc *header, const packet_source *source,
                            const Envelope *envelope, uint32_t session_id, uint32_t acknum,
                            uint16_t send_seq, uint8_t resent) noexcept nogil:
    memset(header, 0, sizeof(wire_truc))
    header.ptype = PTYPE_TRUC
    header.dst_endpoint = <uint8_t>envelope.dst_endpoint
    header.src_endpoint = <uint8_t>source.endpoint
    header.length = TRUC_DATA_BYTES
    header.session = be32(envelope.session)
    header.type = WIRE_TRUC_ACK
    header.lib_seqnum = be16(envelope.seqnum)
    header.session_id = be32(session_id)
    header.acknum = be32(acknum)
    header.send_seq = be16(send_seq)
    header.resent = resent
