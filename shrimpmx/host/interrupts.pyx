"""The irq agent: an interrupt handler that polls rx rings.

An interrupt sets a vector's bit in the core's pending word and wakes the agent. The
handler then owns the vector's claim token, polls the rx ring up to a budget (NAPI's
weight of 64), and hands the token back when the ring is empty. At most one
interrupt per vector is outstanding, as in the myri10ge driver.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.host.copy_queue cimport copy_queue_end_batch, copy_queue_open
from shrimpmx.host.pull_backlog cimport backlog_empty
from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.native.atomics cimport (
    exchange_u32,
    exchange_u64,
    full_fence,
    load_acquire_u32,
    load_relaxed_u32,
    load_relaxed_u64,
    prefetch_read,
    store_relaxed_u32,
    store_release_u32,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport wait_slot_wake
from shrimpmx.native.ring cimport ring, ring_available_from, ring_consume, ring_slot
from shrimpmx.native.trace cimport (
    TRACE_interrupt,
    TRACE_poll_begin,
    TRACE_poll_end,
    Trace,
    trace_record,
)
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport (
    COUNTER_budget_exhausted,
    COUNTER_demotions,
    COUNTER_dma_ring_full,
    COUNTER_interrupts,
    COUNTER_polls,
    COUNTER_reclaims,
    COUNTER_timer_ticks,
    NO_RUNNER,
    frame_slot,
    interrupt_vector,
    node_core,
    node_handled,
    node_vector,
)
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil
    int __builtin_popcountll(unsigned long long) noexcept nogil

# Between two looks at the timers of pulls: a quarter of their resend delay, at least this.
cdef enum:
    TICK_MIN_NS = 1_000_000
    TICKS_PER_RESEND_DELAY = 4

# Between two looks for room in the tx ring while pull replies wait for it: the ring goes on
# holding frames for 1 ms at 10 Gb/s, so that the link does not run dry (ours).
cdef enum:
    BACKLOG_LOOK_NS = 50_000

# Frames handed back to the NIC at a time: few stores to the line that it reads, and a
# full rx ring is relieved before the poll ends.
cdef enum:
    CONSUME_BATCH_PACKETS = 16


cdef class InterruptAgent(Agent):
    """Serves the interrupts of one emulated core.

    `agent`: its record in the control segment; `budget`: frames per poll; `demote_after`:
    polls in a row that use up the budget before it asks to lose its real-time priority, as
    Linux moves to ksoftirqd (0: never, which lets receive livelock happen). The agent of core 0
    also ticks: it looks after pulls whose replies do not come, whoever started them.
    """

    def __init__(self, Node node not None, uint32_t core, uint32_t agent,
                 uint32_t budget=64, uint32_t demote_after=10):
        if budget == 0:
            raise InputError("the irq budget must be at least 1 packet per poll")
        self.handler = ReceiveHandler(node, core, agent)
        self.node = node
        self.core = core
        self.budget = budget
        self.demote_after = demote_after
        self.header = node.header
        self.interrupts = node_core(node.header, core)
        self.nic_slot = node.control.slot(node.header.nic_runner)
        if node.header.dma_runner != NO_RUNNER:
            self.handler.context.copies = &self.handler.copies
        self.record = node.control.agent(agent)
        self.counters = <uint64_t *>self.record.counters
        self.name = node.control.agent_info(agent)["name"]
        self.tick_ns = max(node.header.pull_resend_delay_ns / TICKS_PER_RESEND_DELAY,
                           <int64_t>TICK_MIN_NS)
        # Core 0 ticks from its first step on, the others never.
        self.next_due_ns = self.next_tick_ns = 0 if core == 0 else NEVER_NS

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what the handler does, in the ring of agent `number`."""
        Agent.use_trace(self, trace, number)
        self.handler.trace = self.trace

    @property
    def scheduled_vectors(self):
        """Bit mask of the vectors that it is polling."""
        return self.scheduled

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef uint64_t vectors, taken
        cdef interrupt_vector *vector
        cdef uint32_t done = 0, handled
        cdef bint exhausted = False
        self.handler.now_ns = now_ns
        if now_ns >= self.next_tick_ns:
            self._tick(now_ns)
        if load_relaxed_u64(&self.interrupts.pending) != 0:
            # I2': takes all interrupts at once; pairs with I2, the NIC's fetch_or
            taken = exchange_u64(&self.interrupts.pending, 0)
            self.counters[COUNTER_interrupts] += __builtin_popcountll(taken)
            self.scheduled |= taken
            done = __builtin_popcountll(taken)
            trace_record(self.trace, now_ns, TRACE_interrupt, taken, self.core)
        vectors = self.scheduled
        while vectors != 0:
            vector = node_vector(self.header, __builtin_ctzll(vectors))
            handled = self._poll(vector)
            done += handled
            if handled >= self.budget:
                exhausted = True
            elif self._complete(vector):
                self.scheduled &= ~(vectors & (~vectors + 1))
            vectors &= vectors - 1
            if vectors == 0:
                self._note_exhausted(exhausted)
        self.next_due_ns = now_ns if self.scheduled != 0 else self.next_tick_ns
        if not backlog_empty(&self.handler.backlog):
            if done == 0:
                self.handler.finish_batch()
            self.next_due_ns = min(self.next_due_ns, now_ns + BACKLOG_LOOK_NS)
        return <int>done

    cdef void _tick(self, int64_t now_ns) noexcept nogil:
        """The clock's interrupt: coarse as a kernel's, and nobody moves it."""
        if self.next_tick_ns != 0:
            self.counters[COUNTER_timer_ticks] += 1
            self.handler.tick(now_ns)
        self.next_tick_ns = now_ns + self.tick_ns

    cdef uint32_t _poll(self, interrupt_vector *vector) noexcept nogil:
        """Handles up to `budget` frames; fewer only if the ring is empty."""
        cdef ring *rx = <ring *>(<char *>self.header + vector.rx_ring_offset)
        cdef uint32_t handled = 0, batch, index
        cdef frame_slot *slot
        cdef frame_slot *ahead
        cdef uint32_t number = <uint32_t>(vector - node_vector(self.header, 0))
        cdef uint32_t position = load_relaxed_u32(node_handled(self.header, number))
        if self.handler.context.copies != NULL:
            copy_queue_open(&self.handler.copies, self.header, number)
        self.counters[COUNTER_polls] += 1
        trace_record(self.trace, self.handler.now_ns, TRACE_poll_begin, number,
                     self.budget)
        while handled < self.budget:
            batch = ring_available_from(rx, position, CONSUME_BATCH_PACKETS)
            batch = min(batch, min(<uint32_t>CONSUME_BATCH_PACKETS, self.budget - handled))
            if batch == 0:
                break
            for index in range(batch):
                slot = <frame_slot *>ring_slot(rx, position + index)
                ahead = <frame_slot *>ring_slot(rx, position + index + 2)
                prefetch_read(ahead)
                prefetch_read(<char *>ahead + 64)
                prefetch_read(<char *>ahead + 128)
                if self.trace != NULL and slot.time_ns > self.handler.now_ns:
                    self.handler.now_ns = slot.time_ns   # it came after the step began
                self.handler.copies.frame = position + index
                self.handler.handle(slot.frame, slot.length)
            position += batch
            self._hand_back(vector, rx, position)
            handled += batch
        self.handler.finish_batch()
        trace_record(self.trace, self.handler.now_ns, TRACE_poll_end, number, handled)
        return handled

    cdef void _hand_back(self, interrupt_vector *vector, ring *rx,
                         uint32_t position) noexcept nogil:
        """The slots up to `position` are the NIC's again, or once the dma agent has copied."""
        if self.handler.context.copies == NULL:
            ring_consume(rx, position - rx.tail)
            return
        # H1: for the NIC's and other handlers' look; the token carries the order of all else
        store_relaxed_u32(&vector.handled, position)
        if not copy_queue_end_batch(&self.handler.copies, position):
            self.counters[COUNTER_dma_ring_full] += 1

    cdef bint _complete(self, interrupt_vector *vector) noexcept nogil:
        """Hands the token back; false if frames came meanwhile and it was claimed again."""
        cdef ring *rx = <ring *>(<char *>self.header + vector.rx_ring_offset)
        cdef const uint32_t *handled = node_handled(
            self.header, <uint32_t>(vector - node_vector(self.header, 0))
        )
        store_release_u32(&vector.token, 1)  # I3: after the ring's tail; pairs with its exchange
        # I1': the token before the look at the wish; pairs with I1, the NIC's fence between
        # its wish and its second look at the token. One of the two sees the other.
        full_fence()
        if load_relaxed_u32(&vector.wish) == 0:
            return True
        # Only a third party's look: without the token the ring's consumer may be another core.
        if (load_acquire_u32(&rx.head) != load_relaxed_u32(handled)  # H1': pairs with H1
                and exchange_u32(&vector.token, 0) == 1):
            self.counters[COUNTER_reclaims] += 1
            return False
        wait_slot_wake(self.nic_slot)
        return True

    cdef void _note_exhausted(self, bint exhausted) noexcept nogil:
        if not exhausted:
            self.exhausted_polls = 0
            self.wants_demotion = False
            return
        self.counters[COUNTER_budget_exhausted] += 1
        self.exhausted_polls += 1
        if (self.exhausted_polls >= self.demote_after and self.demote_after != 0
                and not self.wants_demotion):
            self.wants_demotion = True
            self.counters[COUNTER_demotions] += 1
