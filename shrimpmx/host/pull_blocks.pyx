"""The blocks of a pull that are in flight: requested, completed, requested again.

A request asks for a whole block, even when some of its frames have come: they are told as
duplicates then. What goes wrong on the way is for the next timeout to repair.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memmove, memset

from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.pull cimport (
    PULL_BLOCKS_IN_FLIGHT, endpoint_pull, pull_block, pull_frame_start, pull_handle,
    pull_wire_handle,
)
from shrimpmx.host.transmit cimport transmit_commit, transmit_prepare
from shrimpmx.native.trace cimport TRACE_pull_again, TRACE_pull_request, trace_record
from shrimpmx.shared.layout cimport (
    COUNTER_pull_nonfirst_block_done_early, COUNTER_pull_request_notonlyfirst_blocks,
    COUNTER_pull_timeout_handler_first_block, COUNTER_pull_timeout_handler_nonfirst_block,
    COUNTER_send_nomem_pull_request, COUNTER_send_pull_request, node_mark,
)
from shrimpmx.wire.wire cimport (
    PTYPE_PULL_REQUEST, WIRE_HEAD_BYTES, WIRE_PULL_MAGIC, be16, be32, wire_pull_request,
    wire_pull_request_compatible,
)


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
