"""The state of one open endpoint of the MX library.

Sources: Open-MX's library for the protocol (sequence numbers, acknowledgements,
resends, early and unexpected messages, zombies) and its defaults.
"""

import os

from libc.stdint cimport UINT32_MAX, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.host.endpoint cimport DriverEndpoint
from shrimpmx.host.regions cimport REGION_HEAP, REGION_PROCESS
from shrimpmx.mx.large cimport large_forget_all
from shrimpmx.mx.match_table cimport matching_close, matching_open
from shrimpmx.mx.pool cimport (
    arena_close, arena_open, arena_populate, pool_close, pool_free_kept, pool_open,
)
from shrimpmx.mx.types cimport (
    FRAGMENTS_MAX, SEQNUM_HALF, SEQNUM_MASK, MxPartner, MxRequest, Reach, list_clear,
)
from shrimpmx.native.copy cimport copy_bytes, copy_from_program, copy_to_program
from shrimpmx.shared.heap cimport Heap
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport (
    ENDPOINT_REGIONS, SMALL_MAX_BYTES, COUNTER_match_comparisons, COUNTER_memory_bounce,
    COUNTER_memory_heap, COUNTER_memory_process, COUNTER_pool_grown,
)
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError, MachineError
from shrimpmx.native.copy import allow_process_memory, process_memory_permitted
from shrimpmx.shared.control import counter_names


# The open endpoints of this process; not its parent's.
cdef list OPEN_LIBRARIES = []
os.register_at_fork(after_in_child=OPEN_LIBRARIES.clear)

cdef enum:
    # What is there before the first message, of unexpected ones and of those kept for a resend: a
    # huge page each (ours).
    READY_BYTES = 2 << 20


cdef class Library:
    """One endpoint's requests, partners and lists; made by `Endpoint`, closed by it."""

    def __init__(self, Node node not None, DriverEndpoint driver not None, parameters, key,
                 uint16_t first_seqnum, Host host not None):
        cdef uint32_t nodes_count
        self.node = node
        self.partner_handles = []
        self.abandoned = []
        self.driver = driver
        self.host = host
        self.counters = driver.counters
        if not 0 <= key <= 0xFFFFFFFF:
            raise InputError(f"key must be a 32-bit number, not {key}")
        self.key = key
        self.settings.first_seqnum = first_seqnum & SEQNUM_MASK
        self.settle(parameters)
        self.send.resends_max = self.settings.resends_max
        self.send.reused = driver.descriptor.sends_freed
        self.clear_lists()
        nodes_count = self.settings.nodes_count
        self.partner.rows = <MxPartner ***>calloc(nodes_count, sizeof(MxPartner **))
        self.partner.row_sizes = <uint16_t *>calloc(nodes_count, sizeof(uint16_t))
        if self.partner.rows == NULL or self.partner.row_sizes == NULL:
            raise MemoryError(f"not enough memory for partners on {nodes_count} nodes")
        self.large.region_owners = <MxRequest **>calloc(ENDPOINT_REGIONS, sizeof(MxRequest *))
        if self.large.region_owners == NULL:
            raise MemoryError("not enough memory for the table of memory regions")
        pool_open(&self.pool, parameters.requests, &self.counters[COUNTER_pool_grown])
        matching_open(&self.matching, parameters.requests, parameters.context_id_bits,
                      parameters.context_id_shift, &self.counters[COUNTER_pool_grown],
                      &self.counters[COUNTER_match_comparisons])
        arena_open(&self.receive_arena, parameters.unexpected_bytes, self.settings.eager_max,
                   &self.counters[COUNTER_pool_grown])
        arena_open(&self.send_arena, parameters.unexpected_bytes, self.settings.eager_max,
                   &self.counters[COUNTER_pool_grown])
        if not self.node.control.is_virtual:
            # A page that faults takes longer than a message. On a virtual clock it takes no time,
            # and a thousand ranks have no room for memory that they do not use.
            arena_populate(&self.receive_arena, READY_BYTES)
            arena_populate(&self.send_arena, READY_BYTES)

    cdef int settle(self, parameters) except -1:
        """What stays as it is while the endpoint is open."""
        cdef Settings *settings = &self.settings
        settings.nodes_count = self.node.header.nodes_count
        settings.ack_delay_ns = parameters.ack_delay_ns
        settings.resend_delay_ns = parameters.resend_delay_ns
        settings.notacked_max = parameters.notacked_max
        settings.resends_max = parameters.resends_max
        settings.zombies_max = parameters.zombies_max
        settings.throttle = min(parameters.throttle, SEQNUM_HALF - 1)
        settings.send_window = parameters.send_window or UINT32_MAX
        settings.pulls_max = parameters.pulls_max or UINT32_MAX
        settings.early_window = parameters.early_window
        settings.self_path = not parameters.disable_self
        # From what length on messages are pulled; fragments can carry only so much (Open-MX).
        settings.frag_bytes = self.node.header.geometry.medium_frag_bytes
        settings.medium_max = settings.frag_bytes * min(
            self.node.header.geometry.medium_frags_max, <uint32_t>FRAGMENTS_MAX)
        settings.eager_max = max(
            SMALL_MAX_BYTES, min(parameters.rndv_threshold, settings.medium_max))
        settings.shared_eager_max = max(
            SMALL_MAX_BYTES, min(parameters.shared_rndv_threshold, settings.medium_max))
        self.prepare_memory(parameters.memory)
        return 0

    cdef int prepare_memory(self, str way) except -1:
        """What may be done with a user's buffer; MachineError if `way` cannot be."""
        if self.node.heap != NULL:
            self.heap = Heap.of_process(self.node, self.driver.index)
        self.settings.heap_direct = self.heap is not None and way in ("auto", "heap")
        if way in ("auto", "process-vm"):
            allow_process_memory()
            self.settings.process_memory = process_memory_permitted()
        if way == "process-vm" and not self.settings.process_memory:
            raise MachineError(
                "memory 'process-vm' needs copies between processes, which this system "
                "forbids; set memory=auto, which takes a bounce buffer instead"
            )
        return 0

    cdef int open(self, object session_id) except -1:
        self.session = self.driver.open(session_id)
        self.opened = True
        self.find_siblings()
        return 0

    cdef int find_siblings(self) except -1:
        cdef Library other
        for other in OPEN_LIBRARIES:
            if self.host.same_process(other.host):
                self.siblings = other.siblings
                break
        else:
            self.siblings = []
        self.siblings.append(self)
        OPEN_LIBRARIES.append(self)
        return 0

    cdef void clear_lists(self) noexcept:
        list_clear(&self.send.resend)
        list_clear(&self.send.starved)
        list_clear(&self.partner.refused)
        list_clear(&self.large.waiting_partners)
        list_clear(&self.large_receive.delayed)
        list_clear(&self.large_receive.held_back)
        list_clear(&self.large.unnotified)
        list_clear(&self.ack.now)
        list_clear(&self.ack.later)
        list_clear(&self.request.completed)
        list_clear(&self.request.forgotten)

    cdef dict counter_values(self):
        return {name: self.counters[i] for i, name in enumerate(counter_names("rank"))}

    cdef void close(self) noexcept:
        """Gives all memory back; the lists are empty afterwards and no call may follow."""
        cdef MxPartner *partner
        self.opened = False
        if self in OPEN_LIBRARIES:
            OPEN_LIBRARIES.remove(self)
            self.siblings.remove(self)
        large_forget_all(self)
        self.clear_lists()
        self.heap = None
        if self.partner.rows != NULL:
            while self.partner.made != NULL:
                partner = self.partner.made
                self.partner.made = partner.made_before
                free(self.partner.rows[partner.peer_index])
                self.partner.rows[partner.peer_index] = NULL
                free(partner)
            free(self.partner.rows)
            free(self.partner.row_sizes)
            self.partner.rows, self.partner.row_sizes = NULL, NULL
        free(self.large.region_owners)
        self.large.region_owners = NULL
        pool_free_kept(&self.pool, &self.receive_arena)
        arena_close(&self.receive_arena)
        arena_close(&self.send_arena)
        pool_close(&self.pool)
        matching_close(&self.matching)

    def __dealloc__(self):
        if self.partner.rows != NULL:
            self.close()


# -- How handlers in other processes reach a user's buffer (mx.memory).
#
# Three ways. A buffer in the rank's heap lies in shared memory: handlers write straight into it,
# as Open-MX's do into pinned pages. For a buffer elsewhere in the process a block of the heap
# stands in, and the rank copies; or handlers reach it by process_vm_readv and writev, a system
# call per frame.
#
# `auto` takes the first of these that can be, but nothing stands in within a node, where one
# call moves a whole message; `heap` never uses system calls, so a buffer elsewhere bounces;
# `process-vm` and `bounce` use only what they are called after, wherever the buffer lies.

cdef int memory_reach(Library library, void *data, uint64_t length, bint away,
                      Reach *reach) noexcept nogil:
    reach.start = <uint8_t *>data
    reach.bounced = False
    if library.settings.heap_direct and library.heap.contains(data, length):
        reach.kind = REGION_HEAP
        count(library, COUNTER_memory_heap)
        return 0
    if not library.settings.process_memory:
        if library.heap is None or length > library.heap.size_bytes // 2:
            return REACH_NEVER
        return 0 if stand_in(library, length, reach) else REACH_LATER
    # Room is left to the program.
    if (library.settings.heap_direct and away and length <= library.heap.size_bytes // 8
            and library.heap.used_bytes <= library.heap.size_bytes // 2
            and stand_in(library, length, reach)):
        return 0
    reach.kind = REGION_PROCESS
    count(library, COUNTER_memory_process)
    return 0


cdef bint stand_in(Library library, uint64_t length, Reach *reach) noexcept nogil:
    cdef uint8_t *block = library.heap.take(length)
    if block == NULL:
        return False
    reach.start = block
    reach.kind = REGION_HEAP
    reach.bounced = True
    count(library, COUNTER_memory_bounce)
    return True


cdef bint memory_fill(Library library, const Reach *reach, const void *data,
                      uint64_t length) noexcept nogil:
    if library.settings.process_memory:
        return copy_from_program(reach.start, data, length)
    copy_bytes(reach.start, data, length)
    return True


cdef bint memory_empty(Library library, const Reach *reach, void *data,
                       uint64_t length) noexcept nogil:
    if library.settings.process_memory:
        return copy_to_program(data, reach.start, length)
    copy_bytes(data, reach.start, length)
    return True


cdef void memory_give(Library library, Reach *reach) noexcept nogil:
    """What `reach` stood for is not needed any more; twice is harmless."""
    if reach.bounced:
        library.heap.give(reach.start)
        reach.bounced = False


def reach_buffer(Library library not None, unsigned char[::1] data not None, bint away=False):
    """What memory_reach says of a buffer, and of the same again after memory_give; for tests."""
    cdef Reach reach
    cdef int result = memory_reach(library, &data[0], <uint64_t>data.shape[0], away, &reach)
    if result != 0:
        return "later" if result == REACH_LATER else "never"
    kind = "heap" if reach.kind == REGION_HEAP else "process"
    bounced, moved = bool(reach.bounced), reach.start != &data[0]
    inside = library.heap is not None and library.heap.contains(reach.start, data.shape[0])
    memory_give(library, &reach)
    return kind, bounced, moved, inside
