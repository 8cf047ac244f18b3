"""Updates as SHRIMP's NIC carries them out (waiting paper, 2.1): checked, deposited, announced.

Nothing that a sender says is believed. What does not fit an export that exists is dropped.

An owner that withdraws an export, or closes, must know when no write to it can happen any more:

    owner:  generation = 0          ; full fence (V3') ; depositing odd? -> wait until it changes
    NIC:    depositing is made odd  ; full fence (V3)  ; generation right? -> deposit
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.atomics cimport (
    full_fence, load_acquire_u32, load_relaxed_u32, load_relaxed_u64, store_relaxed_u32,
    store_release_u32,
)
from shrimpmx.native.trace cimport TRACE_drop, trace_record
from shrimpmx.nic.deposit cimport deposit
from shrimpmx.nic.page_interrupts cimport PageInterrupts
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.layout cimport (
    AGENT_NIC, COUNTER_drop_vmmc_no_process, COUNTER_drop_vmmc_not_exported,
    COUNTER_drop_vmmc_out_of_range, COUNTER_rx_bytes, COUNTER_rx_packets, COUNTER_vmmc_update_bytes,
    COUNTER_vmmc_updates,
)
from shrimpmx.shared.vmmc cimport (
    VMMC_ANY_NODE, VMMC_EXPORTS, VMMC_OPEN, VMMC_PAGE_SHIFT, node_vmmc, vmmc_export,
    vmmc_exports_of, vmmc_process, vmmc_process_of,
)

from shrimpmx.errors import InputError


cdef class Updates:
    """What comes for the processes of `node`, whose NIC is agent `agent`.

    `watchdog_ns`: time of the polling watchdog. InputError if the node has another NIC.
    """

    def __init__(self, Node node not None, uint32_t agent, int64_t watchdog_ns):
        self.header = node.header
        if self.header.vmmc_offset == 0:
            raise InputError(
                f"node {self.header.index} was not laid out for a vmmc NIC: set nic=vmmc")
        self.node = node
        self.interrupts = PageInterrupts(node, agent, watchdog_ns)
        self.counters = <uint64_t *>node.control.agent(agent).counters
        self.shared = node_vmmc(self.header)
        self.heap_bytes = 0 if node.heap_segment is None else node.heap_segment.size_bytes

    cdef void begin(self) noexcept nogil:
        if not self.depositing:
            self.depositing = True
            store_relaxed_u32(&self.shared.depositing, self.shared.depositing + 1)
            full_fence()  # V3: odd before any look at a process or export; pairs with V3'

    cdef void end(self) noexcept nogil:
        if self.depositing:
            self.depositing = False
            store_release_u32(&self.shared.depositing, self.shared.depositing + 1)

    cdef uint32_t put(self, const update_request *request, int64_t now_ns) noexcept nogil:
        cdef vmmc_process *process = self.open_process(request.endpoint)
        cdef vmmc_export *target
        cdef uint64_t part, start, size, length = request.length
        if process == NULL:
            return COUNTER_drop_vmmc_no_process
        target = self.find_export(process, request.export_index)
        if (target == NULL or load_relaxed_u32(&target.generation) != request.generation
                or not may_map(target, request.source)):
            return COUNTER_drop_vmmc_not_exported
        # Each is read once: what has been checked is what is used.
        part = load_relaxed_u64(&process.heap_offset)
        start, size = load_relaxed_u64(&target.offset), load_relaxed_u64(&target.length)
        if (request.offset > size or length > size - request.offset
                or not self.lies_in_heap(process, part, start, size)):
            return COUNTER_drop_vmmc_out_of_range
        start += request.offset
        deposit(self.node.heap + part + start, request.data, request.length)
        self.counters[COUNTER_vmmc_updates] += 1
        self.counters[COUNTER_vmmc_update_bytes] += length
        if request.interrupt and length != 0 and load_relaxed_u32(&target.interrupts):
            self.interrupts.written(request.endpoint, start >> VMMC_PAGE_SHIFT,
                                    (start + length - 1) >> VMMC_PAGE_SHIFT, now_ns)
        return 0

    cdef uint32_t take(self, const update_request *request, uint64_t size_bytes,
                       int64_t now_ns) noexcept nogil:
        cdef uint32_t dropped
        self.counters[COUNTER_rx_packets] += 1
        self.counters[COUNTER_rx_bytes] += size_bytes
        dropped = self.put(request, now_ns)
        if dropped != 0:
            self.counters[dropped] += 1
            trace_record(self.interrupts.trace, now_ns, TRACE_drop, dropped, AGENT_NIC)
        return dropped

    cdef vmmc_process *open_process(self, uint32_t endpoint) noexcept nogil:
        """The process at an endpoint; NULL if there is none that is open."""
        cdef vmmc_process *process
        if endpoint >= self.header.endpoints_count:
            return NULL
        process = vmmc_process_of(self.header, endpoint)
        return process if load_acquire_u32(&process.state) == VMMC_OPEN else NULL

    cdef vmmc_export *find_export(self, vmmc_process *process, uint32_t index) noexcept nogil:
        """An export of the process; NULL if there is none of that index."""
        cdef vmmc_export *found
        if index >= VMMC_EXPORTS:
            return NULL
        found = vmmc_exports_of(self.header, process) + index
        return found if load_acquire_u32(&found.generation) != 0 else NULL

    cdef bint lies_in_heap(self, vmmc_process *process, uint64_t part, uint64_t offset,
                           uint64_t length) noexcept nogil:
        """Whether a range lies in the process's part, which begins there in the node's heap."""
        cdef uint64_t size = load_relaxed_u64(&process.heap_bytes)
        return (part <= self.heap_bytes and size <= self.heap_bytes - part
                and size <= <uint64_t>(process.pages_count - 1) << VMMC_PAGE_SHIFT
                and offset <= size and length <= size - offset)


cdef bint may_map(const vmmc_export *export, uint32_t source) noexcept nogil:
    cdef uint32_t allowed = load_relaxed_u32(&export.allowed_node)
    return allowed == VMMC_ANY_NODE or allowed == source
