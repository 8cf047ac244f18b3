"""The pull engine: how a large message is fetched, block by block.

The rank starts a pull; from then on receive handlers carry it on without the rank: each reply
is stored in the rank's region, and the block behind the last one is requested when the first
one in flight is complete (Open-MX `omx_pull.c`; the coalescing paper, II-C). A reply is
untrusted: it must name a living pull, come from its peer and be a frame that is still wanted.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.copy_queue cimport copy_queue_add
from shrimpmx.host.endpoint cimport DriverEndpoint
from shrimpmx.host.event_fill cimport fill_pull_done
from shrimpmx.host.event_ring cimport (
    endpoint_lock_take, event_writer, event_writer_commit, event_writer_open_expected,
    event_writer_prepare,
)
from shrimpmx.host.ledger cimport ledger_event, ledger_pull
from shrimpmx.host.local cimport local_pull
from shrimpmx.host.pull_blocks cimport (
    pull_append_blocks, pull_ask_again_early, pull_ask_again_late, pull_drop_complete,
)
from shrimpmx.host.regions cimport (
    endpoint_region, memory_region, region_copy_begin, region_holds, region_write,
)
from shrimpmx.host.transmit cimport transmit_doorbell
from shrimpmx.native.atomics cimport store_release_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.native.process_memory cimport MEMORY_BAD
from shrimpmx.native.ring cimport ring_free
from shrimpmx.native.trace cimport TRACE_block_done, TRACE_pull_done, trace_record
from shrimpmx.shared.layout cimport (
    COUNTER_dma_ring_full, COUNTER_dmarecv_bytes, COUNTER_dmarecv_pull_reply,
    COUNTER_drop_nack_mcp_bad_wire_handle, COUNTER_drop_pull_bad_replies,
    COUNTER_drop_pull_reply_bad_seqnum, COUNTER_drop_pull_reply_bad_seqnum_wraparound,
    COUNTER_drop_pull_reply_bad_wire_handle, COUNTER_drop_pull_reply_duplicate,
    COUNTER_exp_eventq_full, COUNTER_pull_done, COUNTER_pull_timeout_abort,
    COUNTER_send_nomem_pull_request, ENDPOINT_PULLS, ENDPOINT_REGIONS, PULL_ABORTED, PULL_OK,
    PULL_TIMED_OUT, PULL_UNWRITABLE, copy_descriptor, event, node_endpoint, node_header,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport (
    NACK_BAD_REGION, NACK_NONE, be16, be32, wire_geometry, wire_nack_mcp, wire_pull_reply,
)

from shrimpmx.shared.host import host_of


# -- the end ------------------------------------------------------------

cdef void post_done(DriverContext *context, pull_handle *handle) noexcept nogil:
    """Tells the rank of a pull that has ended, and frees its handle; the next tick tries
    again when there is no room."""
    cdef event_writer writer
    cdef event *e
    if handle.copies != 0:
        return
    event_writer_open_expected(&writer, context.node, context.endpoint)
    e = event_writer_prepare(&writer)
    if e == NULL:
        context.counters[COUNTER_exp_eventq_full] += 1
        return
    # A process that dies from here on has told the rank, or not: see endpoint_pulls_repair.
    handle.telling_index = writer.next
    store_release_u32(&handle.state, PULL_TELLING)
    event_writer_commit(&writer, e, fill_pull_done(
        e, handle.peer, handle.dst_endpoint, handle.cookie, handle.received,
        <uint8_t>handle.status))
    ledger_event(context, writer.kind)
    handle.state = PULL_FREE
    context.endpoint.pulls_active -= 1
    context.event_posted = True
    context.counters[COUNTER_pull_done] += 1
    trace_record(context.trace, context.now_ns, TRACE_pull_done, handle.status, handle.received)


cdef void end_pull(DriverContext *context, pull_handle *handle, uint32_t status) noexcept nogil:
    handle.status = status
    store_release_u32(&handle.state, PULL_ENDED)  # after the status: see endpoint_pulls_repair
    post_done(context, handle)


cdef inline void end_if_complete(DriverContext *context, pull_handle *handle) noexcept nogil:
    # No block in flight: all are requested and none misses a frame.
    if handle.blocks_count == 0 and handle.copies == 0:
        # An error rather than a hole, whatever went wrong.
        end_pull(context, handle,
                 PULL_OK if handle.received == handle.total_length else PULL_ABORTED)


# -- start --------------------------------------------------------------

cdef pull_handle *free_handle(DriverContext *context) noexcept nogil:
    cdef uint32_t index
    cdef pull_handle *handle
    for index in range(<uint32_t>ENDPOINT_PULLS):
        handle = endpoint_pull(context.node, context.endpoint, index)
        if handle.state == PULL_FREE:
            return handle
    return NULL


cdef void start_locked(DriverContext *context, pull_handle *handle) noexcept nogil:
    """Begins the pull whose wishes are filled in."""
    cdef node_header *node = context.node
    handle.generation = pull_next_generation(handle.generation)
    handle.skip = handle.remote_offset % node.geometry.pull_frame_bytes
    handle.region_use = endpoint_region(node, context.endpoint, handle.region).use
    handle.resend_ns = context.now_ns + node.pull_resend_delay_ns
    handle.abort_ns = NEVER_NS
    if node.pull_resends_max < (NEVER_NS - context.now_ns) / node.pull_resend_delay_ns:
        handle.abort_ns = context.now_ns + node.pull_resend_delay_ns * node.pull_resends_max
    handle.received = handle.next_frame = handle.blocks_count = handle.copies = 0
    handle.last_core = 0
    handle.state = PULL_ACTIVE
    context.endpoint.pulls_active += 1
    pull_append_blocks(context, handle)
    end_if_complete(context, handle)


cdef int pull_start(DriverEndpoint driver, int64_t now_ns, uint32_t peer, uint32_t dst_endpoint,
                    uint32_t session, uint32_t length, uint8_t rdma_id, uint8_t rdma_seqnum,
                    uint32_t remote_offset, uint32_t region, uint64_t cookie) noexcept nogil:
    cdef DriverContext context
    cdef pull_handle *handle
    if region >= ENDPOINT_REGIONS:
        return -NACK_BAD_REGION
    if driver.sends_locally(peer):
        return local_pull(driver, dst_endpoint, session, length, rdma_id, rdma_seqnum,
                          remote_offset, region, cookie)
    context.node = driver.node.header
    context.endpoint = driver.descriptor
    context.endpoint_index = driver.index
    context.core = context.process_core = 0
    context.port = &driver.port
    context.copies = NULL
    context.counters = driver.counters
    context.trace = NULL  # the library records the start of a pull
    context.now_ns = now_ns
    context.event_posted = context.frames_committed = False
    # All the first requests or none: what is not asked for now waits for a whole timeout.
    if ring_free(driver.port.tx, PULL_BLOCKS_IN_FLIGHT) < PULL_BLOCKS_IN_FLIGHT:
        driver.counters[COUNTER_send_nomem_pull_request] += 1
        return 0
    if not endpoint_lock_take(driver.node.header, driver.descriptor):
        return 0
    handle = free_handle(&context)
    if handle != NULL:
        handle.peer = peer
        handle.dst_endpoint = dst_endpoint
        handle.session = session
        handle.total_length = length
        handle.rdma_id = rdma_id
        handle.rdma_seqnum = rdma_seqnum
        handle.remote_offset = remote_offset
        handle.region = region
        handle.cookie = cookie
        start_locked(&context, handle)
    shared_lock_give(&driver.descriptor.lock)
    if context.frames_committed:
        transmit_doorbell(&driver.port)
    return handle != NULL


# -- what comes back ----------------------------------------------------

cdef inline uint32_t check_frame(const pull_handle *handle, const wire_pull_reply *reply,
                                 const wire_geometry *geometry, uint32_t *frame) noexcept nogil:
    """0 and the frame's number if a reply is a frame of a block in flight, else its drop counter.

    Only the low byte of a frame's number travels; its place in the message tells the rest.
    """
    cdef uint32_t full = geometry.pull_frame_bytes
    cdef const pull_block *last = &handle.blocks[handle.blocks_count - 1]
    cdef uint32_t offset = be32(reply.message_offset)
    cdef uint32_t first = handle.blocks[0].frame_index
    cdef uint32_t distance = (reply.frame_seqnum - first) & 0xFF
    cdef uint32_t window = last.frame_index + last.frames - first
    cdef uint32_t by_offset = <uint32_t>((<uint64_t>offset + handle.skip) / full)
    frame[0] = first + distance
    if (by_offset & 0xFF != reply.frame_seqnum
            or offset != pull_frame_start(by_offset, full, handle.skip)):
        return COUNTER_drop_pull_reply_bad_seqnum_wraparound
    if distance >= window:
        return COUNTER_drop_pull_reply_bad_seqnum
    if by_offset != frame[0]:
        return COUNTER_drop_pull_reply_bad_seqnum_wraparound
    if be16(reply.frame_length) != pull_frame_length(frame[0], full, handle.skip,
                                                     handle.total_length):
        return COUNTER_drop_pull_bad_replies
    return 0


cdef uint32_t pull_reply(DriverContext *context, Node node, const uint8_t *header,
                         uint32_t peer) noexcept nogil:
    cdef const wire_pull_reply *reply = <const wire_pull_reply *>header
    cdef pull_handle *handle = pull_find(context.node, context.endpoint,
                                         be32(reply.dst_pull_handle))
    cdef uint32_t index = 0, frame = 0, refused
    cdef uint64_t bit
    if handle == NULL or handle.peer != peer:
        return COUNTER_drop_pull_reply_bad_wire_handle
    if handle.blocks_count == 0:  # all has come, and is being copied
        return COUNTER_drop_pull_reply_bad_seqnum
    refused = check_frame(handle, reply, &context.node.geometry, &frame)
    if refused != 0:
        return refused
    while frame >= handle.blocks[index].frame_index + handle.blocks[index].frames:
        index += 1
    bit = <uint64_t>1 << (frame - handle.blocks[index].frame_index)
    if not handle.blocks[index].missing & bit:
        return COUNTER_drop_pull_reply_duplicate
    handle.blocks[index].missing &= ~bit
    handle.resend_ns = context.now_ns + context.node.pull_resend_delay_ns
    ledger_pull(context, handle)
    # What comes next is asked for before this frame's data is copied: it travels meanwhile.
    if handle.blocks[index].missing == 0:
        trace_record(context.trace, context.now_ns, TRACE_block_done,
                     handle.blocks[index].frame_index, be32(reply.dst_pull_handle))
        if index == 0:
            pull_drop_complete(handle)
            pull_append_blocks(context, handle)
        else:
            pull_ask_again_early(context, handle, index)
    store_frame(context, node, handle, reply)
    return 0


cdef bint offloaded(DriverContext *context, pull_handle *handle, memory_region *region,
                    const uint8_t *data, uint64_t offset, uint32_t length) noexcept nogil:
    """Hands a copy to the dma agent, if there is one and the copy is worth it."""
    cdef copy_descriptor *copy
    if (context.copies == NULL or handle.total_length < context.node.copy_message_bytes
            or length < context.node.copy_frame_bytes
            or not region_holds(region, offset, length)):
        return False
    copy = copy_queue_add(context.copies)
    if copy == NULL:
        context.counters[COUNTER_dma_ring_full] += 1
        return False
    copy.source_offset = <uint64_t>(data - <const uint8_t *>context.node)
    copy.region_offset = offset
    copy.region = handle.region
    copy.endpoint = context.endpoint_index
    copy.pull_handle = pull_wire_handle(
        <uint32_t>(handle - endpoint_pull(context.node, context.endpoint, 0)), handle.generation)
    copy.length = length
    # Counted before the agent can see it: the pull does not end, nor the region, without it.
    handle.copies += 1
    region_copy_begin(region)
    context.counters[COUNTER_dmarecv_pull_reply] += 1
    context.counters[COUNTER_dmarecv_bytes] += length
    return True


cdef void store_frame(DriverContext *context, Node node, pull_handle *handle,
                      const wire_pull_reply *reply) noexcept nogil:
    """Copies a frame's data where it belongs, or has it copied; ends the pull with the last."""
    cdef const uint8_t *data = <const uint8_t *>reply + sizeof(wire_pull_reply)
    cdef uint32_t length = be16(reply.frame_length)
    cdef uint32_t offset = be32(reply.message_offset)
    cdef memory_region *region = endpoint_region(context.node, context.endpoint, handle.region)
    cdef int copied
    if region.use != handle.region_use:
        end_pull(context, handle, PULL_ABORTED)
        return
    if offloaded(context, handle, region, data, offset, length):
        return
    copied = region_write(node, context.endpoint, handle.region, offset, data, length)
    if copied < 0:
        end_pull(context, handle, PULL_UNWRITABLE if copied == MEMORY_BAD else PULL_ABORTED)
        return
    handle.received += length
    end_if_complete(context, handle)


cdef uint32_t pull_nack(DriverContext *context, const uint8_t *header,
                        uint32_t peer) noexcept nogil:
    cdef const wire_nack_mcp *nack = <const wire_nack_mcp *>header
    cdef pull_handle *handle = pull_find(context.node, context.endpoint,
                                         be32(nack.src_pull_handle))
    if handle == NULL or handle.peer != peer:
        return COUNTER_drop_nack_mcp_bad_wire_handle
    ledger_pull(context, handle)
    end_pull(context, handle,
             nack.nack_type if NACK_NONE < nack.nack_type <= NACK_BAD_REGION else PULL_ABORTED)
    return 0


cdef void pull_copies_done(DriverContext *context, uint32_t wire_handle, uint32_t count,
                           uint32_t length, uint32_t failed) noexcept nogil:
    cdef pull_handle *handle = endpoint_pull(context.node, context.endpoint,
                                             wire_handle & (ENDPOINT_PULLS - 1))
    if (handle.state == PULL_FREE or handle.copies < count
            or handle.generation != wire_handle >> PULL_INDEX_BITS):
        return
    handle.copies -= count
    handle.received += length
    if handle.state == PULL_ENDED:
        post_done(context, handle)
    elif failed != PULL_OK:
        end_pull(context, handle, failed)
    else:
        end_if_complete(context, handle)


# -- timers -------------------------------------------------------------

cdef void pulls_tick(DriverContext *context) noexcept nogil:
    cdef uint32_t left = context.endpoint.pulls_active
    cdef uint32_t index
    cdef pull_handle *handle
    for index in range(<uint32_t>ENDPOINT_PULLS):
        if left == 0:
            return
        handle = endpoint_pull(context.node, context.endpoint, index)
        if handle.state == PULL_FREE:
            continue
        left -= 1
        if handle.state == PULL_ENDED:
            post_done(context, handle)
        elif context.now_ns >= handle.abort_ns:
            context.counters[COUNTER_pull_timeout_abort] += 1
            end_pull(context, handle, PULL_TIMED_OUT)
        elif context.now_ns >= handle.resend_ns:
            handle.resend_ns = context.now_ns + context.node.pull_resend_delay_ns
            pull_ask_again_late(context, handle)
            pull_append_blocks(context, handle)  # of one that began again after a death


# -- for Python ---------------------------------------------------------

def start(DriverEndpoint driver not None, peer, dst_endpoint, *, length, region, session=0,
          rdma_id=0, rdma_seqnum=0, remote_offset=0, cookie=0) -> int:
    """Start a pull as the library does; see pull_start in pull.pxd. For tests and tools."""
    return pull_start(driver, host_of(driver.node.control).now_ns(), peer, dst_endpoint, session,
                      length, rdma_id, rdma_seqnum, remote_offset, region, cookie)


def active(Node node not None, uint32_t endpoint) -> int:
    """Pulls of an endpoint that have not ended, or whose end its rank was not told yet."""
    _check_endpoint(node, endpoint)
    return node_endpoint(node.header, endpoint).pulls_active


def handovers(Node node not None) -> int:
    """Pull replies and ends of all endpoints that another core handled than the one before."""
    cdef uint32_t endpoint, index
    cdef uint64_t total = 0
    for endpoint in range(node.header.endpoints_count):
        for index in range(<uint32_t>ENDPOINT_PULLS):
            total += endpoint_pull(node.header, node_endpoint(node.header, endpoint),
                                   index).handovers
    return total


cdef int _check_endpoint(Node node, uint32_t endpoint) except -1:
    if endpoint >= node.header.endpoints_count:
        raise IndexError(f"no endpoint {endpoint}; there are {node.header.endpoints_count}")
    return 0
