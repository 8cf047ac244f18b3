"""The interrupt handler of a node with SHRIMP's NIC: the hook of the waiting paper's section 4.

The NIC interrupts a core for an endpoint, and has noted in the endpoint's process why: a page that
a waiter had enabled was written, or a page that notifies was. For a waiter the handler clears the
interrupt enable bits of *all* pages that it waits for, then wakes it: one wake-up, however many of
them are written. Each notification is one signal to the process, whose own handler runs.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, meter_of
from shrimpmx.costs.rows cimport COST_interrupt_time_ns
from shrimpmx.host.charges cimport interrupts_end_ns
from shrimpmx.native.atomics cimport (
    compare_exchange_u32, exchange_u32, exchange_u64, load_acquire_u32, load_relaxed_u32,
    load_relaxed_u64,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport wait_slot_wake
from shrimpmx.native.trace cimport TRACE_interrupt, TRACE_rank_wake, trace_record
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport (
    COUNTER_interrupts, COUNTER_vmmc_notifications, COUNTER_vmmc_unclaimed, COUNTER_vmmc_wakes,
    agent_paid,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport (
    VMMC_PAGE_BLOCK, VMMC_PAGE_FIRED, VMMC_PAGE_OFF, VMMC_WATCHED_MAX, vmmc_core_of, vmmc_pages_of,
    vmmc_process, vmmc_process_of,
)

from shrimpmx.errors import InputError

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil
    int __builtin_popcountll(unsigned long long) noexcept nogil


cdef class VmmcInterruptAgent(Agent):
    """Serves the interrupts of one emulated core.

    Args:
        node: one that was laid out for a vmmc NIC.
        core: whose interrupts it serves.
        agent: its record in the control segment.
        prices: of its host, by which it pays for an interrupt, from the NIC's raising it to the
            wake-up. The handler works for so long.
        delivery_ns: of that, its way to the core, as of an InterruptAgent.
    """

    def __init__(self, Node node not None, uint32_t core, uint32_t agent,
                 Prices prices=None, int64_t delivery_ns=0):
        if node.header.vmmc_offset == 0:
            raise InputError(
                f"node {node.header.index} was not laid out for a vmmc NIC: set nic=vmmc"
            )
        self.node = node
        self.core = core
        self.header = node.header
        self.interrupts = vmmc_core_of(node.header, core)
        self.record = node.control.agent(agent)
        self.meter = meter_of(prices, agent_paid(self.record))
        if self.meter.prices != NULL and delivery_ns != 0:
            self.occupancy_ns = max(
                <int64_t>0, self.meter.prices.ns[COST_interrupt_time_ns] - delivery_ns)
        self.counters = <uint64_t *>self.record.counters
        self.name = node.control.agent_info(agent)["name"]

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef int done
        if now_ns < self.busy_until_ns:
            return 0
        self.next_due_ns = NEVER_NS
        # Those that it has spent its time on; later ones have to wait for theirs.
        done = self.serve_taken(now_ns)
        done += self.take_pending(now_ns)
        if now_ns < self.busy_until_ns:
            self.next_due_ns = self.busy_until_ns
            return done
        return done + self.serve_taken(now_ns)

    cdef int take_pending(self, int64_t now_ns) noexcept nogil:
        """Take all interrupts that are pending, and begin their time; returns how many."""
        cdef int count = 0
        cdef uint32_t i
        for i in range(<uint32_t>PENDING_WORDS):
            if load_relaxed_u64(&self.interrupts.pending[i]) != 0:
                # I2': takes all at once; pairs with I2, the NIC's fetch_or
                self.taken[i] = exchange_u64(&self.interrupts.pending[i], 0)
                count += __builtin_popcountll(self.taken[i])
        if count != 0:
            self.counters[COUNTER_interrupts] += count
            trace_record(self.trace, now_ns, TRACE_interrupt, 1, self.core)
            self.busy_until_ns = interrupts_end_ns(
                &self.meter,
                min(now_ns, <int64_t>load_relaxed_u64(<uint64_t *>&self.interrupts.raised_ns)),
                <uint32_t>count, self.occupancy_ns, now_ns)
        return count

    cdef int serve_taken(self, int64_t now_ns) noexcept nogil:
        cdef int count = 0
        cdef uint32_t i
        for i in range(<uint32_t>PENDING_WORDS):
            while self.taken[i] != 0:
                self.serve(64 * i + <uint32_t>__builtin_ctzll(self.taken[i]), now_ns)
                self.taken[i] &= self.taken[i] - 1
                count += 1
        return count

    cdef void serve(self, uint32_t endpoint, int64_t now_ns) noexcept nogil:
        """Do what the NIC interrupted for; it may have been done with an earlier interrupt."""
        cdef vmmc_process *process
        cdef bint woken
        if endpoint >= self.header.endpoints_count:
            return
        process = vmmc_process_of(self.header, endpoint)
        if load_relaxed_u32(&process.runner) >= self.node.control.header.runners_count:
            return
        woken = self.wake(process, now_ns)
        if self.notify(process, now_ns) == 0 and not woken:
            self.counters[COUNTER_vmmc_unclaimed] += 1

    cdef bint wake(self, vmmc_process *process, int64_t now_ns) noexcept nogil:
        """The hook: if data came for a page that the process waits for, disable all of these
        pages and wake it. False if nothing came, or the process has found it without a wake-up.
        """
        if exchange_u32(&process.fired, 0) == 0:
            return False
        self.disable_watched(process)
        if not wait_slot_wake(self.node.control.slot(process.runner)):
            return False
        self.counters[COUNTER_vmmc_wakes] += 1
        trace_record(self.trace, now_ns, TRACE_rank_wake, process.runner, 0)
        return True

    cdef void disable_watched(self, vmmc_process *process) noexcept nogil:
        cdef uint32_t *pages = <uint32_t *>vmmc_pages_of(self.header, process)
        cdef uint32_t count = min(load_acquire_u32(&process.watched_count),
                                  <uint32_t>VMMC_WATCHED_MAX)
        cdef uint32_t i, page, word
        for i in range(count):
            page = load_relaxed_u32(&process.watched[i])
            if page >= process.pages_count:
                continue
            word = load_relaxed_u32(&pages[page])
            # The NIC may turn BLOCK into FIRED meanwhile; words of other meaning stay.
            while (word == VMMC_PAGE_BLOCK or word == VMMC_PAGE_FIRED) and (
                    not compare_exchange_u32(&pages[page], word, VMMC_PAGE_OFF)):
                word = load_relaxed_u32(&pages[page])

    cdef uint32_t notify(self, vmmc_process *process, int64_t now_ns) noexcept nogil:
        """Send what notifications there are, a signal each; returns how many."""
        cdef uint32_t count = exchange_u32(&process.notifications, 0)
        for _ in range(count):
            wait_slot_wake(self.node.control.slot(process.runner))
        if count != 0:
            self.counters[COUNTER_vmmc_notifications] += count
            trace_record(self.trace, now_ns, TRACE_rank_wake, process.runner, 1)
        return count
