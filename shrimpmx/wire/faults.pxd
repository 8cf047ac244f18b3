"""Faults of a link, drawn from a seed, and the frames that are held back to reorder them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef enum fault:
    FAULT_NONE = 0
    FAULT_LOSE = 1
    FAULT_CORRUPT = 2
    FAULT_DUPLICATE = 4
    FAULT_HOLD = 8


cdef enum:
    HELD_FRAMES_MAX = 64     # held back at once; more are sent in order


cdef class FaultSource:
    cdef uint64_t state              # of the generator, never 0
    cdef uint64_t only               # bit per packet type that faults apply to
    cdef bint checked                # the far NIC looks at the frame check sequence
    cdef uint64_t lose_below, corrupt_below, duplicate_below, hold_below
    cdef readonly uint32_t reorder_degree

    cdef void spread_seed(self) noexcept
    cdef uint64_t next_random(self) noexcept nogil
    cdef int draw(self, const uint8_t *frame, uint32_t length) noexcept nogil
    cdef void flip_bit(self, uint8_t *frame, uint32_t length) noexcept nogil


cdef struct held_frame:
    int64_t release_ns      # latest
    uint32_t destination
    uint32_t overtaken      # by how many frames to the same destination so far
    uint32_t length
    bint bad_fcs
    uint8_t *bytes


cdef class HeldFrames:
    cdef held_frame frames[HELD_FRAMES_MAX]
    cdef uint32_t count
    cdef uint8_t *memory

    cdef bint hold(self, uint32_t destination, int64_t release_ns, const uint8_t *frame,
                   uint32_t length, bint bad_fcs) noexcept nogil
    cdef void count_overtaking(self, uint32_t destination) noexcept nogil
    cdef void drop(self, uint32_t position) noexcept nogil
    cdef int64_t earliest_ns(self) noexcept nogil
