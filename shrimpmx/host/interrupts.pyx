"""The irq agent: an interrupt handler that polls rx rings.

An interrupt sets a vector's bit in the core's pending word and wakes the agent. The
handler then owns the vector's claim token, polls the rx ring up to a budget (NAPI's
weight of 64), and hands the token back when the ring is empty. At most one
interrupt per vector is outstanding, as in the myri10ge driver.

With `defer_hard_irqs` a handler that has emptied the ring does not hand the token back at once:
interrupts stay off, and a timer polls, until that many polls in a row have found nothing (Linux:
napi_defer_hard_irqs and gro_flush_timeout). Where ranks poll too, the agent of a vector's timer
core also has the timer that ends a suspension. Of the token's ways see token.pxd.

With software steering (RPS) the handler that polls the rx ring hands frames on to other cores, and
each core polls its backlog, too; see rps.pyx.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.host.copy_queue cimport copy_queue_end_batch, copy_queue_open
from shrimpmx.host.pull_backlog cimport backlog_empty
from shrimpmx.host.pull_tick cimport pull_tick_ns
from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.host.rps cimport PacketSteering
from shrimpmx.host.token cimport token_free, token_take
from shrimpmx.native.atomics cimport (
    exchange_u64,
    full_fence,
    load_acquire_u32,
    load_relaxed_u32,
    load_relaxed_u64,
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
    BUSY_POLL_NONE,
    CORE_PENDING_BACKLOG,
    COUNTER_budget_exhausted,
    COUNTER_demotions,
    COUNTER_dma_ring_full,
    COUNTER_interrupts,
    COUNTER_poll_timers,
    COUNTER_polls,
    COUNTER_reclaims,
    COUNTER_timer_ticks,
    NO_RUNNER,
    STEERING_RPS,
    TOKEN_DEFERRED,
    TOKEN_FREE,
    TOKEN_RESUMED,
    TOKEN_SUSPENDED,
    TOKEN_TAKEN,
    frame_slot,
    interrupt_vector,
    node_backlog,
    node_core,
    node_handled,
    node_rx_ring,
    node_vector,
)
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil
    int __builtin_popcountll(unsigned long long) noexcept nogil

# Between two looks for room in the tx ring while pull replies wait for it: the ring goes on
# holding frames for 1 ms at 10 Gb/s, so that the link does not run dry (ours).
cdef enum:
    BACKLOG_LOOK_NS = 50_000

# Frames handed back to the NIC at a time: few stores to the line that it reads, and a
# full rx ring is relieved before the poll ends.
cdef enum:
    CONSUME_BATCH_PACKETS = 16

# Polled beside the vectors' rings, as if it were one more: the bit of CORE_PENDING_BACKLOG.
cdef enum:
    BACKLOG = 63


cdef class InterruptAgent(Agent):
    """Serves the interrupts of one emulated core.

    `agent`: its record in the control segment; `budget`: frames per poll; `demote_after`:
    polls in a row that use up the budget before it asks to lose its real-time priority, as
    Linux moves to ksoftirqd (0: never, which lets receive livelock happen). The agent of core 0
    also ticks: it looks after pulls whose replies do not come, whoever started them.

    Another machine's costs: `interrupt_time_ns` is how long an interrupt takes at least, from the
    NIC's raising it to the poll, `packet_cost_ns` is added to what a frame takes, before it is
    handled. The handler works for so long.

    `defer_hard_irqs`: polls in a row that must find nothing before interrupts are on again, and
    `flush_timeout_ns`: between two of them. A timer's interrupt costs what a NIC's does.
    """

    def __init__(self, Node node not None, uint32_t core, uint32_t agent,
                 uint32_t budget=64, uint32_t demote_after=10,
                 int64_t interrupt_time_ns=0, int64_t packet_cost_ns=0,
                 uint32_t defer_hard_irqs=0, int64_t flush_timeout_ns=0):
        if budget == 0:
            raise InputError("the irq budget must be at least 1 packet per poll")
        self.handler = ReceiveHandler(node, core, agent)
        self.node = node
        self.core = core
        self.budget = budget
        self.demote_after = demote_after
        self.interrupt_time_ns = interrupt_time_ns
        self.packet_cost_ns = packet_cost_ns
        self.defer_hard_irqs = defer_hard_irqs
        self.flush_timeout_ns = flush_timeout_ns
        self.header = node.header
        self.watches = node.header.busy_poll != BUSY_POLL_NONE
        self.keeps_timers = self.watches or defer_hard_irqs != 0
        self.next_poll_ns = NEVER_NS
        self.interrupts = node_core(node.header, core)
        self.nic_slot = node.control.slot(node.header.nic_runner)
        if node.header.dma_runner != NO_RUNNER:
            self.handler.context.copies = &self.handler.copies
        self.steers = node.header.steering == STEERING_RPS
        if self.steers:
            self.steering = PacketSteering(node, core, agent)
        self.record = node.control.agent(agent)
        self.counters = <uint64_t *>self.record.counters
        self.name = node.control.agent_info(agent)["name"]
        self.tick_ns = pull_tick_ns(node.header)
        # Core 0 ticks from its first step on, the others never.
        self.next_due_ns = self.next_tick_ns = 0 if core == 0 else NEVER_NS

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what the handler does, in the ring of agent `number`."""
        Agent.use_trace(self, trace, number)
        self.handler.trace = self.trace

    @property
    def scheduled_vectors(self):
        """Bit mask of the vectors that it is polling."""
        return self.scheduled & ~CORE_PENDING_BACKLOG

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef uint64_t taken = 0
        cdef uint32_t done = 0, handled, number
        if now_ns < self.busy_until_ns:
            return 0
        self.handler.now_ns = now_ns
        if now_ns >= self.next_tick_ns:
            self._tick(now_ns)
        if self.keeps_timers:
            done = self._look_at_timers(now_ns)
        if load_relaxed_u64(&self.interrupts.pending) != 0:
            taken = self._take_interrupts(now_ns)
            done += __builtin_popcountll(taken)
        if done != 0 and self._interrupted_until(taken, done, now_ns) > now_ns:
            self.next_due_ns = self.busy_until_ns
            return <int>done
        if self.left == 0:
            self.left = self.scheduled
            self.exhausted = False
        while self.left != 0:
            number = <uint32_t>__builtin_ctzll(self.left)
            if self.packet_cost_ns == 0:
                handled = self._poll(number)
            elif self._poll_charged(number, now_ns):
                handled = self.polled
            else:
                self.next_due_ns = self.busy_until_ns
                return <int>done + 1
            self.left &= self.left - 1
            done += handled
            if handled >= self.budget:
                self.exhausted = True
                if number != BACKLOG:
                    self.defers_left[number] = self.defer_hard_irqs
            elif self._complete(number, handled):
                self.scheduled &= ~(<uint64_t>1 << number)
            if self.left == 0:
                self._note_exhausted()
        self.next_due_ns = (
            now_ns if self.scheduled != 0 else min(self.next_tick_ns, self.next_poll_ns))
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

    cdef uint64_t _take_interrupts(self, int64_t now_ns) noexcept nogil:
        """Takes all interrupts at once: those of the NIC, and other cores' for the backlog."""
        # I2': pairs with I2, the fetch_or of NIC and other cores
        cdef uint64_t taken = exchange_u64(&self.interrupts.pending, 0)
        self.counters[COUNTER_interrupts] += __builtin_popcountll(taken & ~CORE_PENDING_BACKLOG)
        self.scheduled |= taken
        trace_record(self.trace, now_ns, TRACE_interrupt, taken, self.core)
        return taken

    cdef int64_t _interrupted_until(self, uint64_t taken, uint32_t count,
                                    int64_t now_ns) noexcept nogil:
        """When `count` interrupts are over, of which the NIC raised those in `taken`; the
        handler's own timer and other cores' the others, which began now.
        """
        cdef int64_t began_ns = now_ns
        taken &= ~CORE_PENDING_BACKLOG
        while taken != 0:
            began_ns = min(began_ns, node_vector(self.header, __builtin_ctzll(taken)).raised_ns)
            taken &= taken - 1
        self.busy_until_ns = began_ns + <int64_t>count * self.interrupt_time_ns
        return self.busy_until_ns

    cdef ring *_ring(self, uint32_t number) noexcept nogil:
        """A vector's rx ring, or the core's backlog."""
        if number == BACKLOG:
            return node_backlog(self.header, self.core)
        return node_rx_ring(self.header, number)

    cdef uint32_t _open(self, uint32_t number, ring *rx) noexcept nogil:
        """Lets the handler know which ring its next frames are from; where they begin."""
        if number == BACKLOG:
            return rx.tail
        self.handler.vector = number
        if self.handler.context.copies != NULL:
            copy_queue_open(&self.handler.copies, self.header, number)
        return load_relaxed_u32(node_handled(self.header, number))

    cdef uint32_t _poll(self, uint32_t number) noexcept nogil:
        """Handles up to `budget` frames; fewer only if the ring is empty."""
        cdef ring *rx = self._ring(number)
        cdef uint32_t position = self._open(number, rx)
        cdef uint32_t handled = 0, batch
        self.counters[COUNTER_polls] += 1
        trace_record(self.trace, self.handler.now_ns, TRACE_poll_begin, number,
                     self.budget)
        while handled < self.budget:
            batch = ring_available_from(rx, position, CONSUME_BATCH_PACKETS)
            batch = min(batch, min(<uint32_t>CONSUME_BATCH_PACKETS, self.budget - handled))
            if batch == 0:
                break
            if self.steers and number != BACKLOG:
                self._spread(rx, position, batch)
            else:
                self.handler.handle_slots(rx, position, batch)
            position += batch
            self._hand_back(number, rx, position)
            handled += batch
        self._end_poll(number, handled)
        return handled

    cdef void _spread(self, ring *rx, uint32_t position, uint32_t count) noexcept nogil:
        """Handles those of `count` frames that are not handed on to other cores."""
        cdef uint32_t index
        for index in range(position, position + count):
            if not self.steering.hand_on(<const frame_slot *>ring_slot(rx, index)):
                self.handler.handle_slots(rx, index, 1)

    cdef void _end_poll(self, uint32_t number, uint32_t handled) noexcept nogil:
        if self.steers and number != BACKLOG:  # a backlog is filled with the token only
            self.steering.end_poll()
        self.handler.finish_batch()
        trace_record(self.trace, self.handler.now_ns, TRACE_poll_end, number, handled)

    cdef bint _poll_charged(self, uint32_t number, int64_t now_ns) noexcept nogil:
        """A poll of a host that takes its time: a frame is handled once its cost is over.

        A step pays for one frame at most; what is handed on to other cores is theirs to pay. True
        when the poll has ended: `polled` frames.
        """
        cdef ring *rx = self._ring(number)
        cdef uint32_t position = self._open(number, rx)
        if self.paid:
            self.paid = False
            self.handler.handle_slots(rx, position, 1)
            position += 1
            self._hand_back(number, rx, position)
            self.handler.finish_batch()
            self.polled += 1
        else:
            self.polled = 0
            self.counters[COUNTER_polls] += 1
            trace_record(self.trace, now_ns, TRACE_poll_begin, number, self.budget)
        while self.polled < self.budget and ring_available_from(rx, position, 1) != 0:
            if (number == BACKLOG or not self.steers
                    or not self.steering.hand_on(<const frame_slot *>ring_slot(rx, position))):
                self.paid = True
                self.busy_until_ns = now_ns + self.packet_cost_ns
                return False
            position += 1
            self._hand_back(number, rx, position)
            self.polled += 1
        self._end_poll(number, self.polled)
        return True

    cdef void _hand_back(self, uint32_t number, ring *rx, uint32_t position) noexcept nogil:
        """The slots up to `position` are the NIC's again, or once the dma agent has copied."""
        if self.handler.context.copies == NULL:
            ring_consume(rx, position - rx.tail)
            return
        # H1: for the NIC's and other handlers' look; the token carries the order of all else
        store_relaxed_u32(&node_vector(self.header, number).handled, position)
        if not copy_queue_end_batch(&self.handler.copies, position):
            self.counters[COUNTER_dma_ring_full] += 1

    cdef bint _complete(self, uint32_t number, uint32_t polled) noexcept nogil:
        """After a poll of `polled` frames hands the token back, or sets a timer instead.

        False if frames came meanwhile and it was claimed again.
        """
        cdef interrupt_vector *vector
        if number == BACKLOG:
            return True  # what comes from now on interrupts
        vector = node_vector(self.header, number)
        if self.defer_hard_irqs != 0 and self._defer(vector, number, polled):
            return True
        if not token_free(vector):
            return True
        # Only a third party's look: without the token the ring's consumer may be another core.
        if (load_acquire_u32(&node_rx_ring(self.header, number).head)
                != load_relaxed_u32(node_handled(self.header, number))  # H1': pairs with H1
                and token_take(vector, TOKEN_FREE, TOKEN_TAKEN)):
            self.counters[COUNTER_reclaims] += 1
            return False
        wait_slot_wake(self.nic_slot)
        return True

    cdef bint _defer(self, interrupt_vector *vector, uint32_t number,
                     uint32_t polled) noexcept nogil:
        """Leaves interrupts off and sets the timer; false if enough polls found nothing."""
        if polled != 0:
            self.defers_left[number] = self.defer_hard_irqs
        if self.defers_left[number] == 0:
            return False
        self.defers_left[number] -= 1
        self._set_timer(vector, number, self.handler.now_ns + self.flush_timeout_ns)
        store_release_u32(&vector.token, TOKEN_DEFERRED + self.core)  # I3
        return True

    cdef void _set_timer(self, interrupt_vector *vector, uint32_t number,
                         int64_t due_ns) noexcept nogil:
        self.timers |= <uint64_t>1 << number
        self.poll_ns[number] = due_ns
        self.next_poll_ns = min(self.next_poll_ns, due_ns)
        if self.watches and vector.timer_core == self.core:
            store_relaxed_u32(&vector.watched, 1)

    cdef uint32_t _look_at_timers(self, int64_t now_ns) noexcept nogil:
        """Takes the vectors that are to be polled without an interrupt; returns how many."""
        cdef interrupt_vector *vector
        cdef uint32_t number, seen
        cdef uint32_t taken = 0
        self.next_poll_ns = NEVER_NS
        for number in range(self.header.vectors_count):
            vector = node_vector(self.header, number)
            while True:
                seen = load_acquire_u32(&vector.token)
                if not self._is_due(vector, number, seen, now_ns):
                    break
                if token_take(vector, seen, TOKEN_TAKEN):
                    self._begin_timed_poll(vector, number, seen)
                    taken += 1
                    break
            if self.timers >> number & 1:
                self.next_poll_ns = min(self.next_poll_ns, self.poll_ns[number])
        return taken

    cdef bint _is_due(self, interrupt_vector *vector, uint32_t number, uint32_t seen,
                      int64_t now_ns) noexcept nogil:
        """Whether to take the token, which is `seen`, now; if not, sees to the timer."""
        cdef uint64_t bit = <uint64_t>1 << number
        cdef int64_t until_ns
        if seen == TOKEN_DEFERRED + self.core:
            return now_ns >= self.poll_ns[number]
        if not self.watches or vector.timer_core != self.core:
            self.timers &= ~bit  # a rank has taken it: the watching core's from now on
            return False
        if seen == TOKEN_SUSPENDED:
            until_ns = <int64_t>load_relaxed_u64(&vector.suspended_until_ns)
            if now_ns >= until_ns:
                return True
            self._set_timer(vector, number, until_ns)
        elif seen == TOKEN_RESUMED:
            return True
        elif self.timers & bit and now_ns >= self.poll_ns[number]:
            self.timers &= ~bit
            store_relaxed_u32(&vector.watched, 0)
            full_fence()  # T1'
            if load_relaxed_u32(&vector.token) == TOKEN_SUSPENDED:
                self._set_timer(vector, number,
                                <int64_t>load_relaxed_u64(&vector.suspended_until_ns))
        return False

    cdef void _begin_timed_poll(self, interrupt_vector *vector, uint32_t number,
                                uint32_t seen) noexcept nogil:
        """With the token in hand, which was `seen`."""
        self.timers &= ~(<uint64_t>1 << number)
        if self.watches and vector.timer_core == self.core:
            store_relaxed_u32(&vector.watched, 0)
        if seen != TOKEN_DEFERRED + self.core:
            self.defers_left[number] = self.defer_hard_irqs
        self.scheduled |= <uint64_t>1 << number
        self.counters[COUNTER_poll_timers] += 1

    cdef void _note_exhausted(self) noexcept nogil:
        """At the end of a round."""
        if not self.exhausted:
            self.exhausted_polls = 0
            self.wants_demotion = False
            return
        self.counters[COUNTER_budget_exhausted] += 1
        self.exhausted_polls += 1
        if (self.exhausted_polls >= self.demote_after and self.demote_after != 0
                and not self.wants_demotion):
            self.wants_demotion = True
            self.counters[COUNTER_demotions] += 1
