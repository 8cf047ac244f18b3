"""Which rx queue a frame goes to."""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.nic.toeplitz cimport Toeplitz
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.node cimport Node


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
