"""The DMA engine: packets on their way from the NIC to host memory.

A packet reserves its slot of its rx ring when it arrives and its bytes are put there at
once; the host sees the slot only when the DMA completes. So each ring itself is the queue of its
pending DMAs: `pending` slots from `reserved` on, each with its time of completion. Packets for
whatever ring pass the engine one after another at its rate; the latency that follows is
pipelined. So they complete in the order in which they were submitted, and `order` remembers for
which rings that was.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from shrimpmx.link.rate cimport rate_line, rate_line_pass
from shrimpmx.native.atomics cimport prefetch_write
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_fill, ring_free, ring_next, ring_slot
from shrimpmx.shared.layout cimport NODE_VECTORS_MAX, frame_slot


cdef enum:
    DMA_PREFETCH_SLOTS = 4       # slots ahead whose lines are fetched for writing (ours)


cdef struct dma_queue:
    ring *frames            # rx ring that is written to
    uint32_t pending


cdef struct dma_engine:
    dma_queue queues[NODE_VECTORS_MAX]
    rate_line line
    int64_t latency_ns
    int64_t due_ns          # when the first pending DMA completes; NEVER_NS: none
    uint8_t *order          # the queue of each pending DMA
    uint32_t order_mask     # it has room for all slots of all rings, and for a power of two
    uint32_t first          # of `order`, free-running
    uint32_t behind         # the last


cdef inline bint dma_has_room(dma_engine *dma, uint32_t queue) noexcept nogil:
    cdef uint32_t pending = dma.queues[queue].pending
    return ring_free(dma.queues[queue].frames, pending + 1) > pending


cdef inline uint32_t dma_behind(dma_engine *dma, uint32_t queue) noexcept nogil:
    """The index behind all packets of a queue, those on their way included; free-running."""
    return dma.queues[queue].frames.reserved + dma.queues[queue].pending


cdef inline frame_slot *dma_submit(dma_engine *dma, uint32_t queue, int64_t arrival_ns,
                                   const uint8_t *frame, uint32_t length) noexcept nogil:
    """Start the DMA of a frame; only with room. Where it goes."""
    cdef ring *frames = dma.queues[queue].frames
    cdef uint32_t index = dma_behind(dma, queue)
    cdef frame_slot *slot = <frame_slot *>(
        ring_next(frames) if index == frames.reserved else ring_slot(frames, index))
    cdef char *ahead = <char *>ring_slot(frames, index + DMA_PREFETCH_SLOTS)
    # The handler read these lines last; a small frame has three.
    prefetch_write(ahead)
    prefetch_write(ahead + 64)
    prefetch_write(ahead + 128)
    slot.length = <uint16_t>length
    slot.time_ns = rate_line_pass(&dma.line, arrival_ns, length) + dma.latency_ns
    memcpy(slot.frame, frame, length)
    if dma.first == dma.behind:
        dma.due_ns = slot.time_ns
    dma.order[dma.behind & dma.order_mask] = <uint8_t>queue
    dma.behind += 1
    dma.queues[queue].pending += 1
    return slot


cdef inline uint32_t dma_first(dma_engine *dma) noexcept nogil:
    """The queue of the DMA that completes first; only with one pending."""
    return dma.order[dma.first & dma.order_mask]


cdef inline frame_slot *dma_complete(dma_engine *dma) noexcept nogil:
    """End the first pending DMA: its slot is filled, to be published by the caller."""
    cdef dma_queue *queue = &dma.queues[dma_first(dma)]
    cdef frame_slot *slot = <frame_slot *>ring_slot(queue.frames, queue.frames.reserved)
    ring_fill(queue.frames)
    queue.pending -= 1
    dma.first += 1
    dma.due_ns = NEVER_NS
    if dma.first != dma.behind:
        queue = &dma.queues[dma_first(dma)]
        dma.due_ns = (<frame_slot *>ring_slot(queue.frames, queue.frames.reserved)).time_ns
    return slot
