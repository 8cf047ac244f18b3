"""Updates as SHRIMP's NIC carries them out (waiting paper, 2.1): checked, deposited, announced.

Nothing that a sender says is believed. What does not fit an export that exists is dropped.

An owner that withdraws an export, or closes, must know when no write to it can happen any more:

    owner:  generation = 0          ; full fence (V3') ; depositing odd? -> wait until it changes
    NIC:    depositing is made odd  ; full fence (V3)  ; generation right? -> deposit
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.native.atomics cimport (
    compare_exchange_u32, fetch_add_u32, fetch_or_u64, full_fence, load_acquire_u32,
    load_relaxed_u32, load_relaxed_u64, store_relaxed_u32, store_relaxed_u64, store_release_u32,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport wait_slot_wake
from shrimpmx.native.trace cimport TRACE_drop, TRACE_irq_raised, trace_record
from shrimpmx.nic.interrupt_line cimport shares_cpu
from shrimpmx.nic.strategies cimport CAUSE_PACKET, CAUSE_TIMEOUT, Cause
from shrimpmx.shared.layout cimport (
    AGENT_NIC, COUNTER_drop_vmmc_no_process, COUNTER_drop_vmmc_not_exported,
    COUNTER_drop_vmmc_out_of_range, COUNTER_irq_raised, COUNTER_irq_raised_packet, COUNTER_rx_bytes,
    COUNTER_rx_packets, COUNTER_vmmc_page_disabled, COUNTER_vmmc_page_interrupts,
    COUNTER_vmmc_update_bytes, COUNTER_vmmc_updates, COUNTER_vmmc_watchdog_polled, core_interrupts,
    node_core,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport (
    VMMC_ANY_NODE, VMMC_EXPORTS, VMMC_OPEN, VMMC_PAGE_BLOCK, VMMC_PAGE_FIRED, VMMC_PAGE_NOTIFY,
    VMMC_PAGE_SHIFT, VMMC_PAGE_WATCHDOG, node_vmmc, vmmc_core, vmmc_core_of, vmmc_export,
    vmmc_exports_of, vmmc_pages_of, vmmc_process, vmmc_process_of,
)

from shrimpmx.errors import InputError


# -- Which writes to memory interrupt, and how: SHRIMP's interrupts at page granularity.
#
# A write interrupts if its sender asks for it, and the word of a page that it touches says that the
# receiver wants it (waiting paper, 2.1). The words and what they mean: enum vmmc_page of
# shared/vmmc.h.
#
# With WATCHDOG the interrupt comes only if the owner has not polled within the watchdog's time
# (polling watchdog, Maquelin 1996). Each process has one timer. It starts with the first write
# that the owner has not polled yet; a later write finds it running and is covered by it, unless
# the owner has polled meanwhile: then it starts anew. The owner's counter is read after the data is
# in place, so that a poll which did not see the data is never taken for one that did.

cdef class PageInterrupts:
    """Raises the interrupts of `node`'s pages.

    Args:
        agent: the NIC's record in the control segment.
        watchdog_ns: time of the polling watchdog.
    """

    def __init__(self, Node node not None, uint32_t agent, int64_t watchdog_ns):
        self.node = node
        self.header = node.header
        self.counters = <uint64_t *>node.control.agent(agent).counters
        self.watchdog_ns = watchdog_ns
        self.due_ns = NEVER_NS
        free(self.timers)
        self.timers = <watchdog_timer *>calloc(self.header.endpoints_count,
                                               sizeof(watchdog_timer))
        if self.timers == NULL:
            raise MemoryError()
        for endpoint in range(self.header.endpoints_count):
            self.timers[endpoint].due_ns = NEVER_NS

    def __dealloc__(self):
        free(self.timers)

    cdef void written(self, uint32_t endpoint, uint64_t first, uint64_t last,
                      int64_t now_ns) noexcept nogil:
        cdef vmmc_process *process = vmmc_process_of(self.header, endpoint)
        cdef uint32_t *pages = <uint32_t *>vmmc_pages_of(self.header, process)
        cdef bint fired = False, notified = False, watched = False
        cdef uint64_t page
        cdef uint32_t word
        full_fence()  # V1: the data before the look at its pages; pairs with V2
        for page in range(first, last + 1):
            word = load_relaxed_u32(&pages[page])
            if word == VMMC_PAGE_BLOCK:
                fired |= compare_exchange_u32(&pages[page], VMMC_PAGE_BLOCK, VMMC_PAGE_FIRED)
            elif word == VMMC_PAGE_NOTIFY:
                notified = True
            elif word == VMMC_PAGE_WATCHDOG:
                watched = True
        if not (fired or notified or watched):
            self.counters[COUNTER_vmmc_page_disabled] += 1
            return
        self.counters[COUNTER_vmmc_page_interrupts] += 1
        if notified:
            fetch_add_u32(&process.notifications, 1)
        if fired:
            store_release_u32(&process.fired, 1)
        if fired or notified:
            self.interrupt(endpoint, process, CAUSE_PACKET, now_ns)
        else:
            self.start_timer(endpoint, process, now_ns)

    cdef void start_timer(self, uint32_t endpoint, vmmc_process *process,
                          int64_t now_ns) noexcept nogil:
        cdef watchdog_timer *timer = &self.timers[endpoint]
        cdef uint32_t polled = load_acquire_u32(&process.polled)
        if timer.due_ns != NEVER_NS:
            if timer.polled == polled:
                return
            self.counters[COUNTER_vmmc_watchdog_polled] += 1
        timer.due_ns = now_ns + self.watchdog_ns
        timer.polled = polled
        self.find_earliest()

    cdef void find_earliest(self) noexcept nogil:
        cdef uint32_t endpoint
        self.due_ns = NEVER_NS
        for endpoint in range(self.header.endpoints_count):
            self.due_ns = min(self.due_ns, self.timers[endpoint].due_ns)

    cdef void expire(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t endpoint
        cdef watchdog_timer *timer
        cdef vmmc_process *process
        for endpoint in range(self.header.endpoints_count):
            timer = &self.timers[endpoint]
            if timer.due_ns > now_ns:
                continue
            timer.due_ns = NEVER_NS
            process = vmmc_process_of(self.header, endpoint)
            if load_acquire_u32(&process.polled) != timer.polled:
                self.counters[COUNTER_vmmc_watchdog_polled] += 1
            elif load_acquire_u32(&process.state) == VMMC_OPEN:
                store_release_u32(&process.fired, 1)
                self.interrupt(endpoint, process, CAUSE_TIMEOUT, now_ns)
        self.find_earliest()

    cdef void interrupt(self, uint32_t endpoint, vmmc_process *process, Cause cause,
                        int64_t now_ns) noexcept nogil:
        """Interrupt the core of `process`, whose words already say why."""
        cdef uint64_t bit = <uint64_t>1 << (endpoint & 63)
        # The owner wrote it: believed only if there is such a core.
        cdef uint32_t number = load_relaxed_u32(&process.core)
        cdef vmmc_core *core
        cdef core_interrupts *interrupts
        if number >= self.header.cores_count:
            number = 0
        core = vmmc_core_of(self.header, number)
        interrupts = node_core(self.header, number)
        store_relaxed_u64(<uint64_t *>&core.raised_ns, <uint64_t>now_ns)
        # I2: what is written and why, before the interrupt; pairs with the handler's I2'.
        if fetch_or_u64(&core.pending[endpoint >> 6], bit) & bit:
            return  # the handler has not taken the last one yet: it serves both
        self.counters[COUNTER_irq_raised] += 1
        self.counters[COUNTER_irq_raised_packet + <int>cause - <int>CAUSE_PACKET] += 1
        trace_record(self.trace, now_ns, TRACE_irq_raised, 0, cause)
        interrupts.taken[0] += 1
        self.core_on_nic_cpu = number + 1 if shares_cpu(self.node, interrupts.runner) else 0
        wait_slot_wake(self.node.control.slot(interrupts.runner))

    cdef bint handler_waits(self) noexcept nogil:
        """A handler has work that it cannot do while the NIC runs: both are on one CPU."""
        cdef vmmc_core *core
        if self.core_on_nic_cpu == 0:
            return False
        core = vmmc_core_of(self.header, self.core_on_nic_cpu - 1)
        return (load_relaxed_u64(&core.pending[0]) | load_relaxed_u64(&core.pending[1])
                | load_relaxed_u64(&core.pending[2]) | load_relaxed_u64(&core.pending[3])) != 0


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
