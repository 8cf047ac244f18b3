"""Memory regions: the parts of a rank's memory that handlers may read or write.

Open-MX pins such memory and maps it into the kernel. Here a region lies in the ranks' shared
heap, which every process maps, or anywhere in the rank, whose memory is then reached by
process_vm_readv and process_vm_writev.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy

from shrimpmx.host.endpoint cimport (
    DriverEndpoint, endpoint_lock_take, event_writer, event_writer_commit,
    event_writer_open_expected, event_writer_prepare,
)
from shrimpmx.host.event_fill cimport fill_unreadable
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.native.process_memory cimport process_read, process_write
from shrimpmx.shared.layout cimport (
    ENDPOINT_REGIONS, HEAP_START_BYTES, endpoint_descriptor, event, node_header,
)
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError


cdef int region_create(DriverEndpoint driver, int kind, const void *data, uint64_t length,
                       uint8_t *rdma_seqnum) noexcept nogil:
    cdef node_header *node = driver.node.header
    cdef endpoint_descriptor *endpoint = driver.descriptor
    cdef memory_region *first = endpoint_region(node, endpoint, 0)
    cdef memory_region *region
    cdef uint64_t place = <uintptr_t>data
    cdef uint64_t heap_end
    cdef uint32_t step, id
    cdef int found = -1
    if kind == REGION_HEAP:
        heap_end = HEAP_START_BYTES + node.heap_bytes * node.endpoints_count
        place -= <uintptr_t>driver.node.heap
        if driver.node.heap == NULL or place > heap_end or length > heap_end - place:
            return -1
    if not endpoint_lock_take(node, endpoint):
        return -1
    # An id rests as long as it can before it is used again: what is late from its last use is
    # then told apart by 8 bits of its number of uses.
    for step in range(<uint32_t>ENDPOINT_REGIONS):
        id = (first.search_from + step) % ENDPOINT_REGIONS
        region = endpoint_region(node, endpoint, id)
        if region_is_free(region):
            region.use += 1
            region.place = place
            region.length = length
            region.kind = kind
            region.unreadable = 0
            first.search_from = id + 1
            rdma_seqnum[0] = <uint8_t>region.use
            found = <int>id
            break
    shared_lock_give(&endpoint.lock)
    return found


cdef void region_destroy(DriverEndpoint driver, int id) noexcept nogil:
    cdef node_header *node = driver.node.header
    cdef endpoint_descriptor *endpoint = driver.descriptor
    cdef memory_region *region
    if id < 0 or id >= ENDPOINT_REGIONS:
        return
    region = endpoint_region(node, endpoint, id)
    if not endpoint_lock_take(node, endpoint):
        return
    if region_is_used(region):
        region.kind = REGION_FREE
    shared_lock_give(&endpoint.lock)
    # No copy can begin any more; those that are under way without the lock are waited for.
    region_await_copies(node, endpoint, region, region_clock_ns() + COPIES_PATIENCE_NS)


cdef int region_write(Node node, endpoint_descriptor *d, uint32_t id, uint64_t offset,
                      const uint8_t *data, uint32_t length) noexcept nogil:
    cdef memory_region *region = endpoint_region(node.header, d, id)
    if id >= ENDPOINT_REGIONS or not region_holds(region, offset, length):
        return -1
    if region.kind == REGION_HEAP:
        memcpy(node.heap + region.place + offset, data, length)
        return 0
    return process_write(d.pid, region.place + offset, data, length)


cdef int region_read(Node node, endpoint_descriptor *d, uint32_t id, uint64_t offset,
                     uint8_t *data, uint32_t length) noexcept nogil:
    cdef memory_region *region = endpoint_region(node.header, d, id)
    if id >= ENDPOINT_REGIONS or not region_holds(region, offset, length):
        return -1
    if region.kind == REGION_HEAP:
        memcpy(data, node.heap + region.place + offset, length)
        return 0
    return process_read(d.pid, region.place + offset, data, length)


cdef bint region_tell_unreadable(node_header *node, endpoint_descriptor *d,
                                 uint32_t id) noexcept nogil:
    cdef memory_region *region = endpoint_region(node, d, id)
    cdef event_writer writer
    cdef event *e
    if region.unreadable:
        return False
    event_writer_open_expected(&writer, node, d)
    e = event_writer_prepare(&writer)
    if e == NULL:  # the rank is told when the data is asked for again
        return False
    event_writer_commit(&writer, e, fill_unreadable(e, id, region.use))
    region.unreadable = 1
    return True


def create(DriverEndpoint driver not None, uint8_t[::1] data not None, kind="heap") -> tuple:
    """Register a buffer of this process: (its id, the use's number). For tests and tools.

    `kind`: "heap" or "process". InputError if no id is free or the buffer is not in the heap.
    """
    cdef uint8_t rdma_seqnum = 0
    cdef const void *start = &data[0] if data.shape[0] else NULL
    if start == NULL and kind == "heap":
        start = driver.node.heap
    cdef int id = region_create(driver, REGION_HEAP if kind == "heap" else REGION_PROCESS, start,
                                data.shape[0], &rdma_seqnum)
    if id < 0:
        raise InputError(f"endpoint {driver.index} has no free region, or the buffer of "
                         f"{data.shape[0]} bytes does not lie in the node's heap")
    return id, rdma_seqnum


def destroy(DriverEndpoint driver not None, int id) -> None:
    """Free a region; waits for the copies that are under way in it."""
    with nogil:
        region_destroy(driver, id)


def hold(DriverEndpoint driver not None, uint32_t id, bint held) -> None:
    """Count a copy of the dma agent in a region as begun, or as done. For tests."""
    cdef memory_region *region = endpoint_region(driver.node.header, driver.descriptor, id)
    if held:
        region_copy_begin(region)
    else:
        region_copy_end(region)


def write(DriverEndpoint driver not None, uint32_t id, uint64_t offset, bytes data) -> bool:
    """What a handler does to store data: false if it does not lie in the region. For tests."""
    return region_write(driver.node, driver.descriptor, id, offset, <const uint8_t *>data,
                        <uint32_t>len(data)) == 0


def read(DriverEndpoint driver not None, uint32_t id, uint64_t offset, uint32_t length):
    """What a handler does to fetch data: the bytes, or None outside the region. For tests."""
    memory = bytearray(length)
    cdef uint8_t[::1] view = memory
    cdef uint8_t nothing = 0
    cdef uint8_t *start = &view[0] if length else &nothing
    if region_read(driver.node, driver.descriptor, id, offset, start, length) < 0:
        return None
    return bytes(memory)
