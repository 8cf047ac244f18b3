"""Updates as SHRIMP's NIC carries them out: checked, deposited, announced by page interrupts."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memmove

from shrimpmx.native.atomics cimport store_relaxed_u32, store_relaxed_u64
from shrimpmx.native.trace cimport trace_ring
from shrimpmx.nic.strategies cimport Cause
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport vmmc_export, vmmc_node, vmmc_process

# -- Depositing data straight into a process's memory, while the process looks at it.
#
# Packets come in order, and the process may take a flag of a later packet for the sign that the
# data of an earlier one is there: each packet's stores follow those before. A word of 4 or 8 bytes
# in its place is one store, so that a flag is never seen half-written.

cdef extern from *:
    enum:
        __ATOMIC_RELEASE
    void __atomic_thread_fence(int order) noexcept nogil


cdef inline void deposit(uint8_t *place, const uint8_t *data, uint32_t length) noexcept nogil:
    cdef uint32_t word
    cdef uint64_t long_word
    __atomic_thread_fence(__ATOMIC_RELEASE)  # V4: after the packets before; pairs with a look
    if length == 4 and (<uintptr_t>place & 3) == 0:
        memcpy(&word, data, 4)
        store_relaxed_u32(<uint32_t *>place, word)
    elif length == 8 and (<uintptr_t>place & 7) == 0:
        memcpy(&long_word, data, 8)
        store_relaxed_u64(<uint64_t *>place, long_word)
    else:
        memmove(place, data, length)  # a process may write to its own export


# -- Interrupts of pages, as SHRIMP's NIC raises them.

cdef struct watchdog_timer:
    int64_t due_ns           # NEVER_NS: it does not run
    uint32_t polled          # what the owner had counted when it was started


cdef class PageInterrupts:
    cdef readonly Node node
    cdef node_header *header
    cdef uint64_t *counters          # the NIC agent's
    cdef trace_ring *trace           # the NIC agent's; NULL: tracing is off
    cdef int64_t watchdog_ns
    cdef watchdog_timer *timers      # one per endpoint
    cdef int64_t due_ns              # of the earliest timer; NEVER_NS: none runs
    cdef uint32_t core_on_nic_cpu    # the core, on the NIC's CPU, that was interrupted last, + 1

    # Something was written to pages `first` to `last`, and its sender asks for an interrupt.
    cdef void written(self, uint32_t endpoint, uint64_t first, uint64_t last,
                      int64_t now_ns) noexcept nogil
    # Ends the timers that are due.
    cdef void expire(self, int64_t now_ns) noexcept nogil
    cdef bint handler_waits(self) noexcept nogil
    cdef void start_timer(self, uint32_t endpoint, vmmc_process *process,
                          int64_t now_ns) noexcept nogil
    cdef void find_earliest(self) noexcept nogil
    cdef void interrupt(self, uint32_t endpoint, vmmc_process *process, Cause cause,
                        int64_t now_ns) noexcept nogil


# What a sender says of its data. Nothing of it is believed.
cdef struct update_request:
    uint32_t endpoint
    uint32_t export_index
    uint32_t generation
    uint32_t source          # the node that it comes from: known, not said
    uint64_t offset          # in the export
    uint32_t length
    bint interrupt           # the sender asks for one
    const uint8_t *data


cdef class Updates:
    cdef readonly Node node
    cdef readonly PageInterrupts interrupts
    cdef node_header *header
    cdef vmmc_node *shared
    cdef uint64_t *counters          # the NIC agent's
    cdef uint64_t heap_bytes         # of the whole node
    cdef bint depositing             # since begin()

    # Around everything that looks at processes and exports, or writes into their memory.
    cdef void begin(self) noexcept nogil
    cdef void end(self) noexcept nogil
    # Returns 0, or the counter of the reason why it was dropped.
    cdef uint32_t put(self, const update_request *request, int64_t now_ns) noexcept nogil
    # The same for one that came as a packet of `size_bytes`; counts that; a drop it counts
    # and records.
    cdef uint32_t take(self, const update_request *request, uint64_t size_bytes,
                       int64_t now_ns) noexcept nogil
    cdef vmmc_process *open_process(self, uint32_t endpoint) noexcept nogil
    cdef vmmc_export *find_export(self, vmmc_process *process, uint32_t index) noexcept nogil
    cdef bint lies_in_heap(self, vmmc_process *process, uint64_t part, uint64_t offset,
                           uint64_t length) noexcept nogil


# Whether a node may map an export and write to it.
cdef bint may_map(const vmmc_export *export, uint32_t source) noexcept nogil
