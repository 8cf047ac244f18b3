"""The pull engine: fetching a large message block by block, and answering its requests.

The rank starts a pull; from then on receive handlers carry it on without the rank: each reply
is stored in the rank's region, and the block behind the last one is requested when the first
one in flight is complete (Open-MX `omx_pull.c`; the coalescing paper, II-C). A reply is
untrusted: it must name a living pull, come from its peer and be a frame that is still wanted.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memmove, memset

from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.copy_queue cimport copy_queue_add
from shrimpmx.host.endpoint cimport (
    DriverEndpoint, endpoint_lock_take, event_writer, event_writer_commit,
    event_writer_open_expected, event_writer_prepare, transmit_commit, transmit_doorbell,
    transmit_prepare,
)
from shrimpmx.host.event_fill cimport fill_pull_done
from shrimpmx.host.ledger cimport ledger_event, ledger_pull
from shrimpmx.host.pull_backlog cimport backlog_append, backlog_empty, backlog_first, block_request
from shrimpmx.host.receive_handler cimport send_nack_mcp
from shrimpmx.host.regions cimport (
    endpoint_region, local_pull, memory_region, region_copy_begin, region_holds, region_is_used,
    region_read, region_tell_unreadable, region_write,
)
from shrimpmx.native.atomics cimport store_release_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.copy cimport MEMORY_BAD
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.native.ring cimport ring_free, ring_publish
from shrimpmx.native.trace cimport (
    TRACE_block_done, TRACE_pull_again, TRACE_pull_done, TRACE_pull_request, trace_record,
)
from shrimpmx.shared.layout cimport (
    ENDPOINT_PULLS, ENDPOINT_REGIONS, PULL_ABORTED, PULL_OK, PULL_TIMED_OUT, PULL_UNWRITABLE,
    COUNTER_dma_ring_full, COUNTER_dmarecv_bytes, COUNTER_dmarecv_pull_reply,
    COUNTER_drop_nack_mcp_bad_wire_handle, COUNTER_drop_pull_bad_offset_length,
    COUNTER_drop_pull_bad_region, COUNTER_drop_pull_bad_replies, COUNTER_drop_pull_reply_bad_seqnum,
    COUNTER_drop_pull_reply_bad_seqnum_wraparound, COUNTER_drop_pull_reply_bad_wire_handle,
    COUNTER_drop_pull_reply_duplicate, COUNTER_exp_eventq_full, COUNTER_pull_done,
    COUNTER_pull_nonfirst_block_done_early, COUNTER_pull_reply_fill_failed,
    COUNTER_pull_request_notonlyfirst_blocks, COUNTER_pull_timeout_abort,
    COUNTER_pull_timeout_handler_first_block, COUNTER_pull_timeout_handler_nonfirst_block,
    COUNTER_send_nomem_pull_reply, COUNTER_send_nomem_pull_request, COUNTER_send_pull_reply,
    COUNTER_send_pull_request, copy_descriptor, event, node_endpoint, node_header, node_mark,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport (
    NACK_BAD_REGION, NACK_NONE, PTYPE_PULL_REPLY, PTYPE_PULL_REQUEST, WIRE_HEAD_BYTES,
    WIRE_PULL_MAGIC, be16, be32, wire_geometry, wire_nack_mcp, wire_pull_reply, wire_pull_request,
    wire_pull_request_compatible,
)

from shrimpmx.shared.host import host_of


# -- The blocks of a pull that are in flight: requested, completed, requested again.
#
# A request asks for a whole block, even when some of its frames have come: they are told as
# duplicates then. What goes wrong on the way is for the next timeout to repair.

cdef inline uint32_t fill_native(wire_pull_request *request, const pull_handle *handle,
                                 const pull_block *block) noexcept nogil:
    """The fields whose width or place differs; the header's length."""
    request.rdma_id = be32(handle.rdma_id)
    request.rdma_seqnum = <uint8_t>handle.rdma_seqnum
    request.rdma_offset = be32(handle.remote_offset)
    request.first_frame_offset = be32(handle.skip if block.frame_index == 0 else 0)
    request.block_length = be32(block.length)
    request.frame_index = be32(block.frame_index)
    return sizeof(wire_pull_request)


cdef inline uint32_t fill_compatible(wire_pull_request_compatible *request,
                                     const pull_handle *handle,
                                     const pull_block *block) noexcept nogil:
    request.rdma_id = <uint8_t>handle.rdma_id
    request.rdma_seqnum = <uint8_t>handle.rdma_seqnum
    request.rdma_offset = be16(<uint16_t>handle.remote_offset)
    request.first_frame_offset = be16(<uint16_t>(handle.skip if block.frame_index == 0 else 0))
    request.block_length = be16(<uint16_t>block.length)
    request.frame_index = be32(block.frame_index)
    return sizeof(wire_pull_request_compatible)


cdef void request_block(DriverContext *context, pull_handle *handle,
                        const pull_block *block) noexcept nogil:
    cdef uint8_t *frame = transmit_prepare(context.port, handle.peer)
    cdef wire_pull_request *request
    cdef uint32_t index = <uint32_t>(
        handle - endpoint_pull(context.node, context.endpoint, 0)
    )
    cdef uint32_t number = be32(pull_wire_handle(index, handle.generation))
    cdef uint32_t magic = be32(context.endpoint_index ^ <uint32_t>WIRE_PULL_MAGIC)
    cdef uint32_t length
    if frame == NULL:
        context.counters[COUNTER_send_nomem_pull_request] += 1
        return
    request = <wire_pull_request *>(frame + WIRE_HEAD_BYTES)
    memset(request, 0, sizeof(wire_pull_request))
    request.ptype = PTYPE_PULL_REQUEST | node_mark(context.node, PTYPE_PULL_REQUEST)
    request.dst_endpoint = <uint8_t>handle.dst_endpoint
    request.src_endpoint = <uint8_t>context.endpoint_index
    request.session = be32(handle.session)
    request.total_length = be32(handle.total_length)
    if context.node.geometry.compatible:
        (<wire_pull_request_compatible *>request).src_pull_handle = number
        (<wire_pull_request_compatible *>request).src_magic = magic
        length = fill_compatible(<wire_pull_request_compatible *>request, handle, block)
    else:
        request.src_pull_handle = number
        request.src_magic = magic
        length = fill_native(request, handle, block)
    transmit_commit(context.port, WIRE_HEAD_BYTES + length)
    context.frames_committed = True
    context.counters[COUNTER_send_pull_request] += 1
    trace_record(context.trace, context.now_ns, TRACE_pull_request, block.frame_index, block.length)


cdef void pull_append_blocks(DriverContext *context, pull_handle *handle) noexcept nogil:
    cdef uint32_t frame_bytes = context.node.geometry.pull_frame_bytes
    cdef uint32_t frames_max = context.node.geometry.pull_block_frames
    cdef uint64_t start, end
    cdef pull_block *block
    while handle.blocks_count < PULL_BLOCKS_IN_FLIGHT:
        start = pull_frame_start(handle.next_frame, frame_bytes, handle.skip)
        if start >= handle.total_length:
            return
        end = pull_frame_start(handle.next_frame + frames_max, frame_bytes, handle.skip)
        end = min(end, <uint64_t>handle.total_length)
        block = &handle.blocks[handle.blocks_count]
        block.frame_index = handle.next_frame
        block.frames = <uint32_t>((end + handle.skip + frame_bytes - 1) / frame_bytes
                                  - handle.next_frame)
        block.length = <uint32_t>(end - start)
        block.asked_again = 0
        block.missing = ~<uint64_t>0 >> (64 - block.frames)
        handle.blocks_count += 1
        handle.next_frame += block.frames
        request_block(context, handle, block)


cdef void pull_drop_complete(pull_handle *handle) noexcept nogil:
    cdef uint32_t complete = 0
    while complete < handle.blocks_count and handle.blocks[complete].missing == 0:
        complete += 1
    handle.blocks_count -= complete
    memmove(&handle.blocks[0], &handle.blocks[complete],
            handle.blocks_count * sizeof(pull_block))


cdef void pull_ask_again_early(DriverContext *context, pull_handle *handle,
                               uint32_t done) noexcept nogil:
    cdef uint32_t index
    cdef bint not_only_first = False
    context.counters[COUNTER_pull_nonfirst_block_done_early] += 1
    for index in range(done):
        if handle.blocks[index].missing == 0 or handle.blocks[index].asked_again:
            continue
        handle.blocks[index].asked_again = 1
        not_only_first |= index > 0
        trace_record(context.trace, context.now_ns, TRACE_pull_again,
                     handle.blocks[index].frame_index, 0)
        request_block(context, handle, &handle.blocks[index])
    context.counters[COUNTER_pull_request_notonlyfirst_blocks] += not_only_first


cdef void pull_ask_again_late(DriverContext *context, pull_handle *handle) noexcept nogil:
    cdef uint32_t index
    for index in range(handle.blocks_count):
        handle.blocks[index].asked_again = 0
        if handle.blocks[index].missing == 0:
            continue
        context.counters[COUNTER_pull_timeout_handler_nonfirst_block if index > 0
                         else COUNTER_pull_timeout_handler_first_block] += 1
        trace_record(context.trace, context.now_ns, TRACE_pull_again,
                     handle.blocks[index].frame_index, 1)
        request_block(context, handle, &handle.blocks[index])


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


# -- The pulled side: a receive handler answers pull requests without the rank.
#
# The data goes from the region straight into the NIC's slots. The last reply of a block is
# latency-sensitive: it lets the puller ask for more (coalescing paper, III-B). What finds no
# room in the tx ring waits in the core's backlog, in order. So do all replies where they take their
# host time, which its agent pays for each.

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
