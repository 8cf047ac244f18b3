"""The DMA engine: packets on their way from the NIC to host memory.

A packet reserves its slot of the rx ring when it arrives and its bytes are put there at
once; the host sees the slot only when the DMA completes. So the ring itself is the queue of
pending DMAs: `pending` slots from `reserved` on, each with its time of completion. Packets pass
the engine one after another at its rate; the latency that follows is pipelined.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

from shrimpmx.native.atomics cimport prefetch_write
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_fill, ring_free, ring_next, ring_slot
from shrimpmx.shared.layout cimport frame_slot
from shrimpmx.wire.rate cimport rate_line, rate_line_pass


cdef enum:
    DMA_PREFETCH_SLOTS = 4       # slots ahead whose lines are fetched for writing (ours)


cdef struct dma_engine:
    ring *frames            # rx ring that it writes to
    rate_line line
    int64_t latency_ns
    int64_t due_ns          # when the first pending DMA completes; NEVER_NS: none
    uint32_t pending


cdef inline bint dma_has_room(dma_engine *dma) noexcept nogil:
    return ring_free(dma.frames, dma.pending + 1) > dma.pending


cdef inline void dma_submit(dma_engine *dma, int64_t arrival_ns, const uint8_t *frame,
                            uint32_t length) noexcept nogil:
    """Start the DMA of a frame; only with room."""
    cdef uint32_t index = dma.frames.reserved + dma.pending
    cdef frame_slot *slot = <frame_slot *>ring_slot(dma.frames, index)
    cdef char *ahead = <char *>ring_slot(dma.frames, index + DMA_PREFETCH_SLOTS)
    # The handler read these lines last; a small frame has three.
    prefetch_write(ahead)
    prefetch_write(ahead + 64)
    prefetch_write(ahead + 128)
    slot.length = <uint16_t>length
    slot.time_ns = rate_line_pass(&dma.line, arrival_ns, length) + dma.latency_ns
    memcpy(slot.frame, frame, length)
    if dma.pending == 0:
        dma.due_ns = slot.time_ns
    dma.pending += 1


cdef inline frame_slot *dma_complete(dma_engine *dma) noexcept nogil:
    """End the first pending DMA: its slot is filled, to be published by the caller."""
    cdef frame_slot *slot = <frame_slot *>ring_next(dma.frames)
    ring_fill(dma.frames)
    dma.pending -= 1
    dma.due_ns = NEVER_NS
    if dma.pending != 0:
        dma.due_ns = (<frame_slot *>ring_next(dma.frames)).time_ns
    return slot
