"""Which rx queue a frame goes to: by the hash of its flow, or by the node's table of endpoints."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport NODE_FLOWS, node_header
from shrimpmx.shared.node cimport Node

# -- The Toeplitz hash of a flow, as receive side scaling has it.

cdef enum:
    TOEPLITZ_BYTES = 12          # two IPv4 addresses and two ports


cdef class Toeplitz:
    cdef uint32_t tables[TOEPLITZ_BYTES][256]   # what a byte at each place adds to the hash

    # Of the first `count` bytes, at most TOEPLITZ_BYTES.
    cdef uint32_t hash(self, const uint8_t *flow, uint32_t count) noexcept nogil


# -- Where the frames of each endpoint have gone, and where they go from now on.

cdef class FlowTable:
    cdef node_header *header
    cdef uint64_t *counters          # the NIC agent's
    cdef uint8_t went[NODE_FLOWS]    # the queue of an endpoint's last frame, + 1; 0: none has come
    cdef uint32_t behind[NODE_FLOWS]    # index in that queue's rx ring behind that frame

    cdef void follow(self, uint32_t endpoint) noexcept nogil
    cdef void passed(self, uint32_t endpoint, uint32_t queue, uint32_t index) noexcept nogil
    cdef bint frames_left(self, uint32_t endpoint) noexcept nogil


cdef enum:
    INDIRECTION_ENTRIES = 128    # of RSS's table (Linux, scaling.rst)


cdef class Steering:
    cdef readonly Node node
    cdef readonly uint32_t queues
    cdef node_header *header
    cdef uint32_t kind               # enum steering_kind
    cdef Toeplitz toeplitz
    cdef uint8_t indirection[INDIRECTION_ENTRIES]

    # `endpoint`: frame_endpoint of the frame.
    cdef uint32_t queue(self, int endpoint, const uint8_t *frame,
                        uint32_t length) noexcept nogil
    cdef uint32_t queue_by_hash(self, const uint8_t *frame, uint32_t length) noexcept nogil
