"""How handlers in other processes reach a user's buffer (mx.memory).

Three ways, the cheapest first. A buffer in the rank's heap lies in shared memory: handlers
write straight into it, as Open-MX's do into pinned pages. Elsewhere in the process it is
reached by process_vm_readv and writev, a system call per frame. Where the system forbids
that, a block of the heap stands in for it, and the rank copies.

`auto` takes the first that can be; `heap` never uses system calls, so a buffer elsewhere
bounces; `process-vm` and `bounce` use only what they are called after, wherever the
buffer lies.
"""

from libc.stdint cimport uint8_t, uint64_t

from shrimpmx.host.regions cimport REGION_HEAP, REGION_PROCESS
from shrimpmx.mx.library cimport Library, count
from shrimpmx.mx.types cimport Reach
from shrimpmx.shared.layout cimport (
    COUNTER_memory_bounce, COUNTER_memory_heap, COUNTER_memory_process,
)


cdef int memory_reach(Library library, void *data, uint64_t length, Reach *reach) noexcept nogil:
    reach.start = <uint8_t *>data
    reach.bounced = False
    if library.settings.heap_direct and library.heap.contains(data, length):
        reach.kind = REGION_HEAP
        count(library, COUNTER_memory_heap)
        return 0
    if library.settings.process_memory:
        reach.kind = REGION_PROCESS
        count(library, COUNTER_memory_process)
        return 0
    reach.start = NULL
    if library.heap is None or length > library.heap.size_bytes // 2:
        return REACH_NEVER
    reach.start = library.heap.take(length)
    if reach.start == NULL:
        return REACH_LATER
    reach.kind = REGION_HEAP
    reach.bounced = True
    count(library, COUNTER_memory_bounce)
    return 0


cdef void memory_give(Library library, Reach *reach) noexcept nogil:
    """What `reach` stood for is not needed any more; twice is harmless."""
    if reach.bounced:
        library.heap.give(reach.start)
        reach.bounced = False


def reach_buffer(Library library not None, unsigned char[::1] data not None):
    """What memory_reach says of a buffer, and of the same again after memory_give; for tests."""
    cdef Reach reach
    cdef int result = memory_reach(library, &data[0], <uint64_t>data.shape[0], &reach)
    if result != 0:
        return "later" if result == REACH_LATER else "never"
    kind = "heap" if reach.kind == REGION_HEAP else "process"
    bounced, moved = bool(reach.bounced), reach.start != &data[0]
    inside = library.heap is not None and library.heap.contains(reach.start, data.shape[0])
    memory_give(library, &reach)
    return kind, bounced, moved, inside
