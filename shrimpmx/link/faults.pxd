"""Faults of a link, drawn from a seed, and the frames that are held back to reorder them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.wire.wire cimport wire_geometry


cdef enum fault:
    FAULT_NONE = 0
    FAULT_LOSE = 1
    FAULT_CORRUPT = 2
    FAULT_DUPLICATE = 4
    FAULT_HOLD = 8


cdef enum overtaking:
    OVERTAKES_NOTHING     # a frame in its turn
    OVERTAKEN             # a fragment that its message's last one is to overtake
    OVERTAKES             # the last fragment of a medium message


cdef enum:
    HELD_FRAMES_MAX = 64     # held back at once; more are sent in order


# The state of a generator for each fault, and of one for the bits that corruption flips.
cdef struct fault_streams:
    uint64_t lose, corrupt, duplicate, hold, bit


cdef class FaultSource:
    cdef fault_streams streams
    cdef uint64_t only               # bit per packet type that faults apply to
    cdef bint checked                # the far NIC looks at the frame check sequence
    cdef uint64_t lose_below, corrupt_below, duplicate_below, hold_below
    cdef readonly uint32_t reorder_degree
    cdef readonly uint32_t overtake

    cdef int draw(self, const uint8_t *frame, uint32_t length) noexcept nogil
    cdef overtaking overtaking_of(self, const uint8_t *frame, uint32_t length,
                                  const wire_geometry *geometry) noexcept nogil
    cdef void flip_bit(self, uint8_t *frame, uint32_t length) noexcept nogil


# Names a medium message of an end: its source, destination and number.
cdef uint64_t message_of(const uint8_t *frame) noexcept nogil


cdef struct held_frame:
    int64_t release_ns      # latest
    uint32_t destination
    uint32_t overtaken      # by how many frames to the same destination so far
    uint32_t wanted         # by how many it has to be
    uint64_t message        # its own, whose last fragment has to overtake it; 0: any frame
    uint32_t length
    bint bad_fcs
    uint8_t *bytes


cdef class HeldFrames:
    cdef held_frame frames[HELD_FRAMES_MAX]
    cdef uint32_t count
    cdef uint8_t *memory

    cdef bint hold(self, uint32_t destination, int64_t release_ns, const uint8_t *frame,
                   uint32_t length, bint bad_fcs, uint32_t wanted,
                   uint64_t message) noexcept nogil
    cdef uint32_t let_go(self, uint32_t destination, uint64_t message,
                         int64_t now_ns) noexcept nogil
    cdef void count_overtaking(self, uint32_t destination) noexcept nogil
    cdef void drop(self, uint32_t position) noexcept nogil
    cdef int64_t earliest_ns(self) noexcept nogil
