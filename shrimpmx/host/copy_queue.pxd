"""Copy offload, the handlers' side: work for the dma agent; see copy_queue.h."""

from libc.stdint cimport uint32_t

from shrimpmx.native.ring cimport ring
from shrimpmx.shared.layout cimport copy_descriptor, node_header

cdef extern from "host/copy_queue.h" nogil:
    cdef struct copy_queue:
        ring *copies
        ring *rx
        copy_descriptor *last
        uint32_t frame
        uint32_t handed_over
    void copy_queue_open(copy_queue *queue, node_header *node, uint32_t vector) noexcept
    copy_descriptor *copy_queue_add(copy_queue *queue) noexcept
    bint copy_queue_end_batch(copy_queue *queue, uint32_t position) noexcept
