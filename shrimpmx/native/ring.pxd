"""Single-producer single-consumer ring in shared memory; see ring.h."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from "native/ring.h" nogil:
    enum:
        RING_HEADER_BYTES
    cdef struct ring:
        uint32_t head
        uint32_t reserved
        uint32_t tail_seen
        uint32_t tail
        uint32_t head_seen
        uint32_t entries
        uint32_t slot_bytes
        uint64_t slots_offset
        uint32_t reuses_slots
    void ring_initialise(ring *r, uint32_t entries, uint32_t slot_bytes,
                         uint64_t slots_offset) noexcept
    void *ring_slot(ring *r, uint32_t index) noexcept
    uint32_t ring_free(ring *r, uint32_t wanted) noexcept
    void *ring_next(ring *r) noexcept
    void ring_fill(ring *r) noexcept
    void ring_publish(ring *r) noexcept
    uint32_t ring_available_from(ring *r, uint32_t position, uint32_t wanted) noexcept
    uint32_t ring_available(ring *r, uint32_t wanted) noexcept
    void ring_consume(ring *r, uint32_t count) noexcept
    uint32_t ring_depth(ring *r) noexcept
