"""The sending end of a link: rate, delay and faults between a NIC and its destinations."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.ring cimport ring
from shrimpmx.shared.layout cimport COUNTERS_MAX
from shrimpmx.wire.faults cimport FaultSource, HeldFrames
from shrimpmx.wire.gap cimport host_gap
from shrimpmx.wire.rate cimport rate_line
from shrimpmx.wire.wire cimport wire_geometry


cdef enum:
    LINK_OVERHEAD_BYTES = 24     # preamble 8, frame check 4, gap 12 (IEEE 802.3)
    REORDER_HOLD_NS = 100000     # held back at most this long if nothing overtakes (ours)
    NO_COUNT = 0x7FFFFFFF        # held until told, however many overtake
    LINK_RETRY_NS = 5000         # soonest to look again for room in a full link ring (ours)


cdef struct link_destination:
    ring *frames                 # incoming link ring of the destination; NULL: no such node
    wait_slot *doorbell          # of the destination's NIC
    bint unpublished


cdef class LinkEgress:
    cdef rate_line line
    cdef host_gap gap
    cdef readonly int64_t delay_ns
    cdef readonly uint32_t source
    cdef readonly uint32_t mtu
    cdef wire_geometry geometry  # of the frames
    cdef int64_t last_arrival_ns
    cdef uint32_t destinations_count
    cdef link_destination *destinations
    cdef uint32_t *unpublished
    cdef uint32_t unpublished_count
    cdef FaultSource faults
    cdef HeldFrames held
    cdef uint64_t *counters
    cdef uint64_t own_counters[COUNTERS_MAX]

    cdef void use_counters(self, uint64_t *counters) noexcept
    cdef int add_destination(self, uint32_t node, ring *frames, wait_slot *doorbell) except -1
    cdef bint has_destination(self, uint32_t node) noexcept nogil
    cdef uint8_t *prepare(self, uint32_t destination) noexcept nogil
    cdef int64_t retry_ns(self, int64_t now_ns, uint32_t destination) noexcept nogil
    cdef void commit(self, int64_t now_ns, uint32_t destination, uint32_t length) noexcept nogil
    cdef int64_t pass_line(self, int64_t now_ns, uint32_t length) noexcept nogil
    cdef int transmit(self, int64_t now_ns, uint32_t destination, const uint8_t *frame,
                      uint32_t length) noexcept nogil
    cdef int64_t flush(self, int64_t now_ns) noexcept nogil
    cdef void fill(self, link_destination *link, uint32_t length, int64_t arrival_ns,
                   bint bad_fcs) noexcept nogil
    cdef void commit_with_faults(self, link_destination *link, int64_t now_ns,
                                 uint32_t destination, uint32_t length) noexcept nogil
    cdef void send_copy(self, link_destination *link, const uint8_t *frame, uint32_t length,
                        int64_t arrival_ns, bint bad_fcs) noexcept nogil
    cdef void release(self, int64_t now_ns) noexcept nogil
