"""Memory regions, and the copy between those of one node; see regions.h."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memset

from shrimpmx.host.endpoint cimport (
    DriverEndpoint, endpoint_lock_take, event_writer, event_writer_commit,
    event_writer_open_expected, event_writer_prepare, local_enter, local_wake,
)
from shrimpmx.host.event_fill cimport fill_pull_done, fill_unreadable
from shrimpmx.native.copy cimport (
    COPY_LARGE_BYTES, COPY_LENGTHS, COPY_STREAMING, MEMORY_BAD, MEMORY_OWN, copy_bytes,
    copy_costs, copy_costs_of, copy_large, copy_learn, copy_next, process_read, process_write,
)
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.shared.layout cimport (
    ENDPOINT_REGIONS, HEAP_START_BYTES, PULL_ABORTED, PULL_OK, PULL_UNWRITABLE,
    COUNTER_exp_eventq_full, COUNTER_shared_nack_lib, COUNTER_shared_pull, endpoint_descriptor,
    event, node_endpoint, node_header,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport NACK_BAD_REGION, NACK_BAD_SESSION

from shrimpmx.errors import InputError


# -- Memory regions: the parts of a rank's memory that handlers may read or write.
#
# Open-MX pins such memory and maps it into the kernel. Here a region lies in the ranks' shared
# heap, which every process maps, or anywhere in the rank, whose memory is then reached by
# process_vm_readv and process_vm_writev.

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
        copy_bytes(node.heap + region.place + offset, data, length)
        return 0
    return process_write(d.pid, region.place + offset, data, length)


cdef int region_read(Node node, endpoint_descriptor *d, uint32_t id, uint64_t offset,
                     uint8_t *data, uint32_t length) noexcept nogil:
    cdef memory_region *region = endpoint_region(node.header, d, id)
    if id >= ENDPOINT_REGIONS or not region_holds(region, offset, length):
        return -1
    if region.kind == REGION_HEAP:
        copy_bytes(data, node.heap + region.place + offset, length)
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


# -- Large messages between ranks of one node: one copy from region to region (Open-MX).
#
# Neither frames nor replies nor a second copy: the puller reads the other rank's memory itself
# and writes its own. The remote region is counted as being copied from, so that its rank
# does not take it back meanwhile; its lock is not held during the copy. A rank waits for a copy
# only so long, hence a look afterwards at whether the region is still there.

# Where the data comes from.
cdef struct Source:
    endpoint_descriptor *descriptor
    memory_region *region
    const uint8_t *start     # in this process; NULL: in the other one
    uint64_t address         # ... there
    int pid


cdef int local_pull(DriverEndpoint driver, uint32_t dst_endpoint, uint32_t session,
                    uint32_t length, uint8_t rdma_id, uint8_t rdma_seqnum,
                    uint32_t remote_offset, uint32_t region, uint64_t cookie) noexcept nogil:
    cdef memory_region *target = endpoint_region(driver.node.header, driver.descriptor, region)
    cdef Source source
    cdef uint8_t *destination = <uint8_t *>target.place
    cdef int result, copied, status = PULL_OK
    if not has_room(driver):
        return 0
    result = find_source(driver.node, dst_endpoint, session, length, rdma_id, rdma_seqnum,
                         remote_offset, &source)
    if result <= 0:
        driver.counters[COUNTER_shared_nack_lib] += result < 0
        return result
    if target.kind == REGION_HEAP:
        destination = driver.node.heap + target.place
    if not region_holds(target, 0, length):
        status = PULL_ABORTED
    elif source.start != NULL:
        if length >= COPY_LARGE_BYTES:
            copy_large(driver.copy_costs, destination, source.start, length)
        else:
            copy_bytes(destination, source.start, length)
    else:
        copied = process_read(source.pid, source.address, destination, length)
        if copied == MEMORY_BAD:
            tell_unreadable(driver, &source, rdma_id)
            region_copy_end(source.region)
            return 0  # until the source's rank has taken the region back
        if copied < 0:
            status = PULL_UNWRITABLE if copied == MEMORY_OWN else PULL_ABORTED
    if not region_copy_holds(driver.node.header, source.descriptor, source.region):
        status = PULL_ABORTED
    region_copy_end(source.region)
    return post_done(driver, dst_endpoint, length if status == PULL_OK else 0, cookie, status)


cdef int find_source(Node node, uint32_t endpoint, uint32_t session, uint32_t length,
                     uint8_t rdma_id, uint8_t rdma_seqnum, uint32_t offset,
                     Source *source) noexcept nogil:
    """Checks the remote region and counts a copy in it; 1, or 0: not now, or -n with an enum
    wire_nack."""
    cdef endpoint_descriptor *descriptor
    cdef memory_region *region
    cdef int entered = local_enter(node.header, endpoint)
    cdef int result = 1
    if entered < 0:
        return entered
    descriptor = node_endpoint(node.header, endpoint)
    region = endpoint_region(node.header, descriptor, rdma_id)
    if descriptor.session_id != session:
        result = -NACK_BAD_SESSION
    elif <uint8_t>region.use != rdma_seqnum or not region_holds(region, offset, length):
        result = -NACK_BAD_REGION
    elif region.unreadable:
        result = 0
    else:
        source.descriptor = descriptor
        source.region = region
        source.start = NULL
        if region.kind == REGION_HEAP:
            source.start = node.heap + region.place + offset
        source.address = region.place + offset
        source.pid = <int>descriptor.pid
        region_copy_begin(region)
    shared_lock_give(&descriptor.lock)
    return result


cdef void tell_unreadable(DriverEndpoint driver, const Source *source,
                          uint32_t region) noexcept nogil:
    cdef uint32_t runner = source.descriptor.runner
    cdef bint posted
    if not endpoint_lock_take(driver.node.header, source.descriptor):
        return
    posted = (region_is_used(source.region)
              and region_tell_unreadable(driver.node.header, source.descriptor, region))
    shared_lock_give(&source.descriptor.lock)
    if posted:
        local_wake(driver.local.control, driver.counters, runner)


cdef bint enter_own(DriverEndpoint driver, event_writer *writer) noexcept nogil:
    """Takes the own endpoint's lock and opens its expected ring."""
    if not endpoint_lock_take(driver.node.header, driver.descriptor):
        return False
    event_writer_open_expected(writer, driver.node.header, driver.descriptor)
    return True


cdef bint has_room(DriverEndpoint driver) noexcept nogil:
    """Whether the own expected ring takes an event; nothing is copied in vain then."""
    cdef event_writer writer
    cdef bint room
    if not enter_own(driver, &writer):
        return False
    room = event_writer_prepare(&writer) != NULL
    shared_lock_give(&driver.descriptor.lock)
    if not room:
        driver.counters[COUNTER_exp_eventq_full] += 1
    return room


cdef bint post_done(DriverEndpoint driver, uint32_t endpoint, uint32_t transferred,
                    uint64_t cookie, int status) noexcept nogil:
    """The event of a pull that ended, in the own expected ring; False if that is full."""
    cdef event_writer writer
    cdef event *e
    if not enter_own(driver, &writer):
        return False
    e = event_writer_prepare(&writer)
    if e != NULL:
        event_writer_commit(&writer, e, fill_pull_done(e, driver.node.header.index, endpoint,
                                                       cookie, transferred, <uint8_t>status))
        driver.counters[COUNTER_shared_pull] += 1
    shared_lock_give(&driver.descriptor.lock)
    return e != NULL


def copy_ways(samples):
    """For tests: whether each copy streams, of `samples` (length, ticks of an ordinary copy, ticks
    of a streaming one)."""
    cdef copy_costs[COPY_LENGTHS] all
    cdef copy_costs *costs
    memset(all, 0, sizeof(all))
    ways = []
    for length, ordinary, streaming in samples:
        costs = copy_costs_of(all, length)
        way = copy_next(costs, length)
        copy_learn(costs, way, length, streaming if way == COPY_STREAMING else ordinary)
        ways.append(way == COPY_STREAMING)
    return ways
