"""The sending end of an emulated line: rate, delay, host gap and faults."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport Egress
from shrimpmx.link.faults cimport FaultSource, HeldFrames
from shrimpmx.link.gap cimport host_gap
from shrimpmx.link.rate cimport rate_line
from shrimpmx.shared.node cimport Node


cdef enum:
    LINK_OVERHEAD_BYTES = 24     # preamble 8, frame check 4, gap 12 (IEEE 802.3)
    REORDER_HOLD_NS = 100000     # held back at most this long if nothing overtakes (ours)
    NO_COUNT = 0x7FFFFFFF        # held until told, however many overtake


cdef class EmulatedLine(Egress):
    cdef Node node               # the sending one
    cdef rate_line line
    cdef host_gap gap
    cdef readonly int64_t delay_ns
    cdef int64_t last_arrival_ns
    cdef FaultSource faults      # None: a perfect link
    cdef uint32_t frames_per_commit   # with faults one frame may become two
    cdef HeldFrames held
    cdef uint64_t *counters      # of the sending NIC's agent

    # What carries the frames overrides these, has_destination() and, if it can, retry_ns(),
    # in_flight() and frames_until_pause().
    #
    # Whether there is room for `wanted` frames.
    cdef bint has_room(self, uint32_t destination, uint32_t wanted) noexcept nogil
    # Where the next frame is built, for which there is room; never NULL.
    cdef uint8_t *place(self, uint32_t destination) noexcept nogil
    # Sends what was built there; its last bit arrives at `arrival_ns`.
    cdef void fill(self, uint32_t destination, uint32_t length, int64_t arrival_ns,
                   bint bad_fcs) noexcept nogil
    # Makes sent frames visible and wakes the NICs that they are for; returns when to publish again
    # at the latest.
    cdef int64_t publish(self, int64_t now_ns) noexcept nogil

    @cython.final
    cdef int64_t pass_line(self, int64_t now_ns, uint32_t length) noexcept nogil

    # Keeps a frame that is to be sent, with these faults, in the capture; its number there.
    @cython.final
    cdef uint32_t keep(self, int64_t now_ns, const uint8_t *frame, uint32_t length,
                       int faults) noexcept nogil

    @cython.final
    cdef int64_t in_order(self, int64_t arrival_ns) noexcept nogil

    @cython.final
    cdef void commit_with_faults(self, int64_t now_ns, uint32_t destination,
                                 uint32_t length) noexcept nogil

    @cython.final
    cdef void send_copy(self, uint32_t destination, const uint8_t *frame, uint32_t length,
                        int64_t arrival_ns, bint bad_fcs) noexcept nogil

    @cython.final
    cdef void release(self, int64_t now_ns) noexcept nogil
