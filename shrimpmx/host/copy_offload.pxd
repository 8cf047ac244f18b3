"""The dma agent: does the receive copies that handlers hand over."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.host.context cimport DriverContext
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport copy_descriptor, endpoint_descriptor, node_header
from shrimpmx.shared.node cimport Node

# Copies of one pull, one behind the other: the pull is told of them at once.
cdef struct CopyRun:
    uint32_t endpoint
    uint32_t pull_handle
    uint32_t count
    uint32_t length                  # bytes stored
    uint32_t failed                  # enum pull_status of one that could not be done; PULL_OK


cdef class CopyAgent(Agent):
    cdef readonly Node node
    cdef node_header *header
    cdef DriverContext context
    cdef double bytes_per_ns         # at which it copies; 0: in no time
    cdef uint32_t vector             # the one whose turn it is, or was last
    cdef uint32_t taken, release_to  # copies that are done but not told; the rx ring's tail then
    cdef CopyRun run                 # of these

    cdef uint32_t _take(self, uint32_t most) noexcept nogil
    cdef uint32_t _finish(self) noexcept nogil
    cdef void _copy(self, const copy_descriptor *wanted, CopyRun *run) noexcept nogil
    cdef void _tell(self, const CopyRun *run) noexcept nogil
    cdef void _wake(self, endpoint_descriptor *endpoint) noexcept nogil
