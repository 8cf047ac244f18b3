"""The pulled side: a receive handler answers pull requests without the rank.

The data goes from the region straight into the NIC's slots. The last reply of a block is
latency-sensitive: it lets the puller ask for more (coalescing paper, III-B). What finds no
room in the tx ring waits in the core's backlog, in order. So do all replies where they take their
host time, which its agent pays for each.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.nack cimport send_nack_mcp
from shrimpmx.host.pull_backlog cimport backlog_append, backlog_empty, backlog_first, block_request
from shrimpmx.host.regions cimport (
    endpoint_region, memory_region, region_holds, region_is_used, region_read,
    region_tell_unreadable,
)
from shrimpmx.host.transmit cimport transmit_commit, transmit_prepare
from shrimpmx.native.process_memory cimport MEMORY_BAD
from shrimpmx.native.ring cimport ring_publish
from shrimpmx.shared.layout cimport (
    COUNTER_drop_pull_bad_offset_length, COUNTER_drop_pull_bad_region,
    COUNTER_pull_reply_fill_failed, COUNTER_send_nomem_pull_reply, COUNTER_send_pull_reply,
    ENDPOINT_REGIONS, node_mark,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport (
    NACK_BAD_REGION, PTYPE_PULL_REPLY, WIRE_HEAD_BYTES, be16, be32, wire_pull_reply,
    wire_pull_request, wire_pull_request_compatible,
)

cdef inline void read_request(block_request *wanted, const uint8_t *header,
                              bint compatible) noexcept nogil:
    cdef const wire_pull_request *native = <const wire_pull_request *>header
    cdef const wire_pull_request_compatible *brief = (
        <const wire_pull_request_compatible *>header
    )
    wanted.total_length = be32(native.total_length)
    if compatible:
        wanted.rdma_id = brief.rdma_id
        wanted.rdma_seqnum = brief.rdma_seqnum
        wanted.rdma_offset = be16(brief.rdma_offset)
        wanted.first_frame_offset = be16(brief.first_frame_offset)
        wanted.length = be16(brief.block_length)
        wanted.frame_index = be32(brief.frame_index)
        wanted.handle = brief.src_pull_handle
        wanted.magic = brief.src_magic
    else:
        wanted.rdma_id = be32(native.rdma_id)
        wanted.rdma_seqnum = native.rdma_seqnum
        wanted.rdma_offset = be32(native.rdma_offset)
        wanted.first_frame_offset = be32(native.first_frame_offset)
        wanted.length = be32(native.block_length)
        wanted.frame_index = be32(native.frame_index)
        wanted.handle = native.src_pull_handle
        wanted.magic = native.src_magic


cdef inline bint find_place(block_request *wanted, const memory_region *region,
                            uint32_t full, uint32_t frames_max) noexcept nogil:
    """Computes where the block begins; false if it is not a block of this region."""
    cdef uint64_t skip = wanted.rdma_offset % full
    cdef uint64_t start = <uint64_t>wanted.frame_index * full + wanted.first_frame_offset
    # The first frame of a message begins `skip` bytes into a frame, all others at its start.
    if wanted.first_frame_offset != (skip if wanted.frame_index == 0 else 0):
        return False
    if wanted.length == 0 or wanted.first_frame_offset + wanted.length > full * frames_max:
        return False
    wanted.message_offset = start - skip
    return (wanted.message_offset + wanted.length <= wanted.total_length
            and region_holds(region, wanted.rdma_offset, wanted.total_length))


cdef uint32_t answer_pull_request(DriverContext *context, Node node, const uint8_t *header,
                                  uint32_t peer) noexcept nogil:
    cdef uint32_t full = context.node.geometry.pull_frame_bytes
    cdef block_request wanted
    cdef memory_region *region
    read_request(&wanted, header, context.node.geometry.compatible)
    region = endpoint_region(context.node, context.endpoint, wanted.rdma_id % ENDPOINT_REGIONS)
    if (wanted.rdma_id >= ENDPOINT_REGIONS or not region_is_used(region)
            or <uint8_t>region.use != wanted.rdma_seqnum):
        if send_nack_mcp(context.port, context.counters, header, peer, NACK_BAD_REGION):
            context.frames_committed = True
        return COUNTER_drop_pull_bad_region
    if not find_place(&wanted, region, full, context.node.geometry.pull_block_frames):
        return COUNTER_drop_pull_bad_offset_length
    wanted.peer = peer
    wanted.endpoint = context.endpoint_index
    wanted.session = (<const wire_pull_request *>header).session
    if (context.paced or not backlog_empty(context.backlog)
            or not send_block(context, node, &wanted)):
        if not backlog_append(context.backlog, &wanted):
            # Left out: the puller asks again when it has waited.
            context.counters[COUNTER_send_nomem_pull_reply] += 1
    # A NIC that is at work sends the block while the next is copied; one that sleeps is woken
    # at the end of the batch, since it would preempt the handler after each block.
    ring_publish(context.port.tx)
    return 0


cdef bint answer_from_backlog(DriverContext *context, Node node) noexcept nogil:
    cdef block_request *wanted = backlog_first(context.backlog)
    cdef memory_region *region = endpoint_region(context.node, context.endpoint, wanted.rdma_id)
    # Else the region is gone, as it may be whenever a request comes late.
    if region_is_used(region) and <uint8_t>region.use == wanted.rdma_seqnum:
        if not send_block(context, node, wanted):
            return False
    context.backlog.tail += 1
    return True


cdef bint send_block(DriverContext *context, Node node, block_request *wanted) noexcept nogil:
    """False if not all were sent: there was no room, or each is paid for; `wanted` is what is left
    then."""
    cdef uint32_t full = context.node.geometry.pull_frame_bytes
    cdef uint32_t length = min(wanted.length, full - wanted.first_frame_offset)
    cdef uint8_t mark = node_mark(context.node, PTYPE_PULL_REPLY)
    cdef uint8_t *frame
    cdef wire_pull_reply *reply
    cdef int copied
    while wanted.length > 0:
        if not reply_has_room(context.port):
            return False
        frame = transmit_prepare(context.port, wanted.peer)
        if frame == NULL:
            return False
        reply = <wire_pull_reply *>(frame + WIRE_HEAD_BYTES)
        copied = region_read(node, context.endpoint, wanted.rdma_id,
                             wanted.rdma_offset + wanted.message_offset,
                             <uint8_t *>reply + sizeof(wire_pull_reply), length)
        if copied < 0:
            context.counters[COUNTER_pull_reply_fill_failed] += 1
            # The rank ends the send and takes the region back, which refuses the puller.
            if copied == MEMORY_BAD and region_tell_unreadable(context.node, context.endpoint,
                                                               wanted.rdma_id):
                context.event_posted = True
            return True
        wanted.length -= length
        reply.ptype = PTYPE_PULL_REPLY | (mark if wanted.length == 0 else 0)
        reply.frame_seqnum = <uint8_t>wanted.frame_index
        reply.frame_length = be16(<uint16_t>length)
        reply.message_offset = be32(<uint32_t>wanted.message_offset)
        reply.dst_pull_handle = wanted.handle
        reply.dst_magic = wanted.magic
        transmit_commit(context.port, WIRE_HEAD_BYTES + sizeof(wire_pull_reply) + length)
        context.frames_committed = True
        context.counters[COUNTER_send_pull_reply] += 1
        wanted.message_offset += length
        wanted.first_frame_offset = 0
        wanted.frame_index += 1
        length = min(wanted.length, full)
        if context.paced:
            return wanted.length == 0
    return True
