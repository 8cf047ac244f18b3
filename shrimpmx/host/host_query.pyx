"""Packets for the host itself and not for an endpoint: host query, host reply, raw.

How a host learns the names of its peers (Open-MX's `omx_peer.c`): the receive handler
answers a query without any process. A node's name is "node" and its number. Raw packets
are kept for the node's raw endpoint.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memset

from shrimpmx.host.raw cimport (
    RAW_FULL, RAW_KEPT, RAW_TOO_LARGE, c_raw_queue, node_raw_queue, raw_name_peer, raw_put,
)
from shrimpmx.host.transmit cimport TransmitPort, transmit_commit, transmit_prepare
from shrimpmx.native.futex cimport wait_slot_wake
from shrimpmx.shared.layout cimport (
    COUNTER_drop_nosys_type, COUNTER_drop_raw_queue_full, COUNTER_drop_raw_too_large,
    COUNTER_rank_wakes, COUNTER_recv_host_query, COUNTER_recv_host_reply, COUNTER_recv_raw,
    COUNTER_send_host_reply, COUNTER_send_nomem_host_reply, node_header,
)
from shrimpmx.wire.wire cimport (
    PTYPE_HOST_QUERY, PTYPE_HOST_REPLY, WIRE_HEAD_BYTES, WIRE_HOST_MAGIC, WIRE_HOST_NAME_MAX_BYTES,
    be16, be32, wire_host_query, wire_host_reply, wire_raw,
)


cdef uint32_t host_packet(TransmitPort *port, uint64_t *counters, const uint8_t *frame, int ptype,
                          uint32_t peer) noexcept nogil:
    cdef const wire_host_reply *reply
    if ptype == PTYPE_HOST_QUERY:
        answer_query(port, counters, frame, peer)
        return COUNTER_recv_host_query
    if ptype == PTYPE_HOST_REPLY:
        reply = <const wire_host_reply *>(frame + WIRE_HEAD_BYTES)
        raw_name_peer(port.node, peer, <const uint8_t *>reply + sizeof(wire_host_reply),
                      reply.length)
        return COUNTER_recv_host_reply
    return take_raw(port.node, counters, frame, peer)


cdef void answer_query(TransmitPort *port, uint64_t *counters, const uint8_t *frame,
                       uint32_t peer) noexcept nogil:
    cdef const wire_host_query *query = <const wire_host_query *>(frame + WIRE_HEAD_BYTES)
    cdef uint8_t *answer = transmit_prepare(port, peer)
    cdef wire_host_reply *reply
    if answer == NULL:
        counters[COUNTER_send_nomem_host_reply] += 1
        return
    reply = <wire_host_reply *>(answer + WIRE_HEAD_BYTES)
    memset(reply, 0, sizeof(wire_host_reply))
    reply.ptype = PTYPE_HOST_REPLY
    reply.src_dst_peer_index = query.src_dst_peer_index
    reply.magic = be32(WIRE_HOST_MAGIC)
    reply.length = <uint8_t>snprintf(<char *>reply + sizeof(wire_host_reply),
                                     WIRE_HOST_NAME_MAX_BYTES, "node%u", port.node.index)
    transmit_commit(port, WIRE_HEAD_BYTES + sizeof(wire_host_reply) + reply.length)
    counters[COUNTER_send_host_reply] += 1


cdef uint32_t take_raw(node_header *node, uint64_t *counters, const uint8_t *frame,
                       uint32_t peer) noexcept nogil:
    cdef const wire_raw *raw = <const wire_raw *>(frame + WIRE_HEAD_BYTES)
    cdef c_raw_queue *queue = node_raw_queue(node)
    cdef int result = raw_put(queue, peer, <const uint8_t *>raw + sizeof(wire_raw),
                              be16(raw.length))
    if result == RAW_KEPT:
        counters[COUNTER_rank_wakes] += wait_slot_wake(&queue.reader)
        return COUNTER_recv_raw
    if result == RAW_FULL:
        return COUNTER_drop_raw_queue_full
    if result == RAW_TOO_LARGE:
        return COUNTER_drop_raw_too_large
    return COUNTER_drop_nosys_type  # no process of this node takes raw packets


cdef uint32_t host_query_fill(uint8_t *frame, uint32_t peer) noexcept nogil:
    cdef wire_host_query *query = <wire_host_query *>(frame + WIRE_HEAD_BYTES)
    memset(query, 0, sizeof(wire_host_query))
    query.ptype = PTYPE_HOST_QUERY
    query.src_dst_peer_index = be16(<uint16_t>peer)
    query.magic = be32(WIRE_HOST_MAGIC)
    return WIRE_HEAD_BYTES + sizeof(wire_host_query)
