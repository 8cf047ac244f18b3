"""Memory regions, and the copy between those of one node; see regions.h."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.host.endpoint cimport DriverEndpoint
from shrimpmx.shared.layout cimport endpoint_descriptor, node_header
from shrimpmx.shared.node cimport Node

# -- Memory regions: the parts of a rank's memory that handlers may read or write; see regions.h.

cdef extern from "host/regions.h" nogil:
    enum:
        REGION_FREE
        REGION_HEAP
        REGION_PROCESS
    cdef struct memory_region:
        uint32_t kind
        uint32_t use
        uint64_t place
        uint64_t length
        uint32_t copies
        uint32_t search_from
        uint32_t unreadable
    memory_region *endpoint_region(node_header *node, endpoint_descriptor *endpoint,
                                   uint32_t id) noexcept
    bint region_is_used(const memory_region *region) noexcept
    bint region_holds(const memory_region *region, uint64_t offset, uint64_t length) noexcept
    void endpoint_regions_reset(node_header *node, endpoint_descriptor *endpoint) noexcept
    void region_copy_begin(memory_region *region) noexcept
    void region_copy_end(memory_region *region) noexcept
    bint region_copy_holds(node_header *node, endpoint_descriptor *endpoint,
                           const memory_region *region) noexcept
    const int64_t COPIES_PATIENCE_NS
    int64_t region_clock_ns() noexcept
    bint region_is_free(const memory_region *region) noexcept
    void region_await_copies(node_header *node, endpoint_descriptor *endpoint,
                             memory_region *region, int64_t end_ns) noexcept
    void endpoint_await_copies(node_header *node, endpoint_descriptor *endpoint) noexcept

# Registers `length` bytes at `data` of the calling process; their id, or -1: none is free, or
# data of REGION_HEAP lies outside the node's heap segment. `rdma_seqnum`: out, tells this use of
# the id from the ones before.
cdef int region_create(DriverEndpoint driver, int kind, const void *data, uint64_t length,
                       uint8_t *rdma_seqnum) noexcept nogil
# Frees the id; waits until no handler, dma agent or local puller copies to or from the region, but
# at most COPIES_PATIENCE_NS: a longer copier was killed or stopped, and the id is not used
# again before that copy has ended.
cdef void region_destroy(DriverEndpoint driver, int id) noexcept nogil
# Copies into or out of a region, with the endpoint's lock held or the copy counted; 0, MEMORY_BAD,
# or another negative number: outside the region, or the rank is gone.
cdef int region_write(Node node, endpoint_descriptor *d, uint32_t id, uint64_t offset,
                      const uint8_t *data, uint32_t length) noexcept nogil
cdef int region_read(Node node, endpoint_descriptor *d, uint32_t id, uint64_t offset,
                     uint8_t *data, uint32_t length) noexcept nogil
# Tells the rank, once, that a region's memory cannot be read; with the endpoint's lock held. True:
# an event was posted.
cdef bint region_tell_unreadable(node_header *node, endpoint_descriptor *d,
                                 uint32_t id) noexcept nogil


# -- Large messages between ranks of one node: one copy from region to region.

# Copies `length` bytes of region (rdma_id, rdma_seqnum) of the node's endpoint `dst_endpoint`,
# from `remote_offset` on, into the own region `region`, an id that there is, and posts
# EVENT_PULL_DONE into the own expected ring. Returns 1; 0 if that ring is full: try again later;
# -n, n an enum wire_nack.
cdef int local_pull(DriverEndpoint driver, uint32_t dst_endpoint, uint32_t session,
                    uint32_t length, uint8_t rdma_id, uint8_t rdma_seqnum,
                    uint32_t remote_offset, uint32_t region, uint64_t cookie) noexcept nogil
