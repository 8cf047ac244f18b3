"""Where the frames of each endpoint have gone, and where they go from now on."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport NODE_FLOWS, node_header


cdef class FlowTable:
    cdef node_header *header
    cdef uint64_t *counters          # the NIC agent's
    cdef uint8_t went[NODE_FLOWS]    # the queue of an endpoint's last frame, + 1; 0: none has come
    cdef uint32_t behind[NODE_FLOWS]    # index in that queue's rx ring behind that frame

    cdef void follow(self, uint32_t endpoint) noexcept nogil
    cdef void passed(self, uint32_t endpoint, uint32_t queue, uint32_t index) noexcept nogil
    cdef bint frames_left(self, uint32_t endpoint) noexcept nogil
