"""Large messages between ranks of one node: one copy from region to region (Open-MX).

Neither frames nor replies nor a second copy: the puller reads the other rank's memory itself
and writes its own. The remote region is counted as being copied from, so that its rank
does not take it back meanwhile; its lock is not held during the copy. A rank waits for a copy
only so long, hence a look afterwards at whether the region is still there.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from shrimpmx.host.endpoint cimport (
    endpoint_lock_take, event_writer, event_writer_commit, event_writer_open_expected,
    event_writer_prepare, local_enter, local_wake,
)
from shrimpmx.host.event_fill cimport fill_pull_done
from shrimpmx.host.regions cimport (
    REGION_HEAP, endpoint_region, memory_region, region_copy_begin, region_copy_end,
    region_copy_holds, region_holds, region_is_used, region_tell_unreadable,
)
from shrimpmx.native.copy cimport (
    COPY_LARGE_BYTES, COPY_LENGTHS, COPY_STREAMING, copy_costs, copy_costs_of, copy_large,
    copy_learn, copy_next,
)
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.native.process_memory cimport MEMORY_BAD, MEMORY_OWN, process_read
from shrimpmx.shared.layout cimport (
    PULL_ABORTED, PULL_OK, PULL_UNWRITABLE, COUNTER_exp_eventq_full, COUNTER_shared_nack_lib,
    COUNTER_shared_pull, endpoint_descriptor, event, node_endpoint,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport NACK_BAD_REGION, NACK_BAD_SESSION

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
            memcpy(destination, source.start, length)
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
