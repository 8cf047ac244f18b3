"""One interrupt vector as the NIC sees it: the claim token and the wish to raise.

As in myri10ge, the host holds a token per vector while its handler runs, and the NIC raises
only with the token in hand: at most one interrupt is outstanding. A wish that meets no token
is remembered. It ends in one of two ways: the token comes back and the interrupt is
delivered, or the handler, still polling, takes the packets that the wish was for.

    NIC:      wish = 1      ; full fence ; token back?           -> take it, deliver
    handler:  token = 1     ; full fence ; wish, and packets?    -> take it back, go on polling

With both fences at least one side sees the other's store, so no wish is forgotten.

Where completed sends interrupt, they have a line of their own beside that of the first rx queue.
Both raise the same interrupt, which reports received frames and sends alike. One is outstanding
until its handler has begun (the token of `sent_frames`). While the handler then polls, and holds
the vector's token, further sends may interrupt it and received frames may not, as in myri10ge.

Every wish is counted once and ends once: irq_wished = irq_raised + irq_absorbed (+ 1 while
one is remembered); irq_held_back counts those that met no token.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from shrimpmx.native.atomics cimport (
    compare_exchange_u32, fetch_or_u64, full_fence, load_acquire_u32, load_relaxed_u32,
    load_relaxed_u64, store_relaxed_u32,
)
from shrimpmx.native.futex cimport wait_slot_wake
from shrimpmx.native.ring cimport ring_publish
from shrimpmx.native.trace cimport (
    TRACE_irq_absorbed, TRACE_irq_held_back, TRACE_irq_raised, TRACE_irq_wished, trace_record,
)
from shrimpmx.nic.strategies cimport CAUSE_PACKET, CAUSE_TIMEOUT, Cause, CoalescingPolicy
from shrimpmx.shared.layout cimport (
    CORE_PENDING_SENT, STEERING_RPS, TOKEN_FREE, TOKEN_TAKEN, COUNTER_irq_absorbed,
    COUNTER_irq_held_back, COUNTER_irq_raised, COUNTER_irq_raised_packet, COUNTER_irq_wished,
    core_interrupts, node_backlog, node_core, node_handled, node_rx_ring, node_vector,
)
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil


cdef class InterruptLine:
    """Raises vector `index` of `node` when `policy` wishes.

    Args:
        raise_if_empty: raise a timeout's interrupt though the rx ring is empty, as the paper's
            pseudocode taken literally does.
        of_sends: report completed sends instead of the rx ring.
    """

    def __init__(self, Node node not None, uint32_t index, CoalescingPolicy policy not None,
                 uint32_t agent, bint raise_if_empty=False, bint of_sends=False):
        self.node = node
        self.index = index
        self.policy = policy
        self.vector = node_vector(node.header, index)
        self.frames = node_rx_ring(node.header, index)
        self.handled = node_handled(node.header, index)
        if index == 0 and node.header.sent.interrupts:
            self.sent = &node.header.sent
        if of_sends:
            self.report_sends()
        else:
            policy.use_ring(self.frames, self.handled)
            self.reports, self.known = &self.frames.reserved, self.handled
            self.token, self.wish = <uint32_t *>&self.vector.token, <uint32_t *>&self.vector.wish
            self.raised_ns = &self.vector.raised_ns
            self.pending = <uint64_t>1 << index
        self.counters = <uint64_t *>node.control.agent(agent).counters
        self.raise_if_empty = raise_if_empty
        self.steered = node.header.rps_cores if node.header.steering == STEERING_RPS else 0

    def report_sends(self):
        """This is the line of completed sends."""
        if self.sent == NULL:
            raise InputError("completed sends interrupt on vector 0 of a node made for it")
        self.reports = <const uint32_t *>&self.sent.count
        self.known = <const uint32_t *>&self.sent.reaped
        self.token, self.wish = <uint32_t *>&self.sent.token, <uint32_t *>&self.sent.wish
        self.raised_ns = &self.sent.raised_ns
        self.pending = CORE_PENDING_SENT

    cdef bint request(self, int64_t now_ns, Cause cause) noexcept nogil:
        """The policy wishes an interrupt for everything that is in host memory now."""
        if self.wished:
            self.wish_index = self.reports[0]
            return False
        ring_publish(self.frames)
        self.counters[COUNTER_irq_wished] += 1
        trace_record(self.trace, now_ns, TRACE_irq_wished, self.index, cause)
        if not self.has_report() and not (self.raise_if_empty and cause == CAUSE_TIMEOUT):
            self.absorb(now_ns, now_ns, cause)
            return False
        if self.take_token():
            self.deliver(now_ns, now_ns, cause)
            return True
        self.wished = True
        self.wish_cause = cause
        self.wish_index = self.reports[0]
        store_relaxed_u32(self.wish, 1)
        full_fence()  # I1: the wish before the look at the token; pairs with the handler's I1'
        if self.take_token():
            self.deliver(now_ns, now_ns, cause)
            return True
        self.counters[COUNTER_irq_held_back] += 1
        trace_record(self.trace, now_ns, TRACE_irq_held_back, self.index, cause)
        return False

    cdef int settle(self, int64_t now_ns, int64_t events_ns) noexcept nogil:
        """See what became of a remembered wish; 1 if that ended it. Call with all published.

        `events_ns` is how far the NIC has come with its events, which is what the policy is told:
        after a pause of the NIC's process `now_ns` is beyond some that have yet to be handled.
        """
        if not self.wished:
            return 0
        if <int32_t>(load_acquire_u32(self.known) - self.wish_index) >= 0:
            self.absorb(now_ns, events_ns, self.wish_cause)
            return 1
        if not self.take_token():
            return 0
        self.deliver(now_ns, events_ns, self.wish_cause)
        return 1

    cdef bint has_report(self) noexcept nogil:
        return load_acquire_u32(self.known) != self.reports[0]

    cdef bint take_token(self) noexcept nogil:
        # The plain looks first: while the handler holds it, its line is not torn away.
        if self.sent != NULL and load_relaxed_u32(&self.sent.token) != TOKEN_FREE:
            return False
        if (load_relaxed_u32(self.token) != TOKEN_FREE
                or not compare_exchange_u32(self.token, TOKEN_FREE, TOKEN_TAKEN)):
            return False
        if self.sent != NULL:   # that token only the NIC takes
            store_relaxed_u32(&self.sent.token, TOKEN_TAKEN)
        return True

    cdef bint handler_waits(self) noexcept nogil:
        """A handler has work that it cannot do while the NIC runs: both are on one CPU."""
        cdef uint64_t left = self.backlogs_on_nic_cpu
        cdef ring *backlog
        if self.shares_nic_cpu and load_relaxed_u32(self.token) == TOKEN_TAKEN:
            return True
        while left != 0:
            backlog = node_backlog(self.node.header, __builtin_ctzll(left))
            left &= left - 1
            if load_relaxed_u32(&backlog.head) != load_relaxed_u32(&backlog.tail):
                return True
        return False

    cdef void note_sharing(self, uint32_t runner) noexcept nogil:
        """See which of the handlers with work are on the NIC's CPU: `runner`, which was
        interrupted, and those that it hands frames on to."""
        cdef uint64_t left = self.steered
        cdef uint32_t core
        self.shares_nic_cpu = shares_cpu(self.node, runner)
        self.backlogs_on_nic_cpu = 0
        while left != 0:
            core = __builtin_ctzll(left)
            left &= left - 1
            if shares_cpu(self.node, node_core(self.node.header, core).runner):
                self.backlogs_on_nic_cpu |= <uint64_t>1 << core

    cdef uint32_t next_core(self) noexcept nogil:
        """The core whose turn it is, of those that the vector's interrupts may go to."""
        cdef uint64_t mask = load_relaxed_u64(&self.vector.affinity)
        cdef uint64_t later = mask >> self.vector.next_core << self.vector.next_core
        cdef uint32_t core = __builtin_ctzll(later if later != 0 else mask)
        self.vector.next_core = (core + 1) & 63
        return core

    cdef void deliver(self, int64_t now_ns, int64_t events_ns, Cause cause) noexcept nogil:
        """With the token in hand: count, tell the core, wake its irq agent."""
        cdef uint32_t core = self.next_core()
        cdef core_interrupts *interrupts
        if self.wished:
            self.wished = False
            store_relaxed_u32(self.wish, 0)
        self.counters[COUNTER_irq_raised] += 1
        trace_record(self.trace, now_ns, TRACE_irq_raised, self.index, cause)
        self.counters[COUNTER_irq_raised_packet + <int>cause - <int>CAUSE_PACKET] += 1
        interrupts = node_core(self.node.header, core)
        interrupts.taken[self.index] += 1
        self.raised_ns[0] = now_ns
        # I2: packets and time are published before the interrupt; pairs with the irq agent's I2'.
        fetch_or_u64(&interrupts.pending, self.pending)
        self.note_sharing(interrupts.runner)
        wait_slot_wake(self.node.control.slot(interrupts.runner))
        self.note_report(self.pending != CORE_PENDING_SENT, True, events_ns, cause)

    cdef void absorb(self, int64_t now_ns, int64_t events_ns, Cause cause) noexcept nogil:
        """The handler has taken the packets of this wish without an interrupt."""
        if self.wished:
            self.wished = False
            store_relaxed_u32(self.wish, 0)
        self.counters[COUNTER_irq_absorbed] += 1
        trace_record(self.trace, now_ns, TRACE_irq_absorbed, self.index, cause)
        self.note_report(False, False, events_ns, cause)

    cdef void note_report(self, bint frames, bint sends, int64_t events_ns,
                          Cause cause) noexcept nogil:
        """An interrupt has reported received frames, or sends, or the host knows of some without
        one. If it does not know of all, the timer that covers the others must go on."""
        if not frames and load_acquire_u32(self.handled) != self.frames.reserved:
            return
        if (not sends and self.sent != NULL
                and load_acquire_u32(&self.sent.reaped) != self.sent.count):
            return
        self.policy.on_raised(events_ns, cause)
