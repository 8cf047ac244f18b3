"""One poll of a ring: its frames go through the receive handler, up to a budget (NAPI's weight).

With software steering (RPS) the handler that polls the rx ring hands frames on to other cores, and
each core polls its backlog, too (PacketSteering). A rank may poll the rx ring itself.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from shrimpmx.costs.meter cimport Prices, meter_of, pay
from shrimpmx.costs.rows cimport COST_cold_packet_ns
from shrimpmx.host.charges cimport charges_frames, pay_frame, pay_poll
from shrimpmx.host.copy_queue cimport copy_queue_end_batch, copy_queue_open
from shrimpmx.host.endpoint cimport transmit_open
from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.host.token cimport (
    token_free, token_is_open, token_resume, token_suspend, token_take, token_watcher,
)
from shrimpmx.native.atomics cimport (
    fetch_add_u64, fetch_or_u64, load_acquire_u32, load_relaxed_u32, store_relaxed_u32,
    store_relaxed_u64,
)
from shrimpmx.native.futex cimport WAIT_SLOT_IDLE, wait_slot, wait_slot_wake
from shrimpmx.native.ring cimport (
    ring, ring_available_from, ring_consume, ring_fill, ring_free, ring_next, ring_publish,
    ring_slot,
)
from shrimpmx.native.trace cimport (
    Capture, TRACE_poll_begin, TRACE_poll_end, trace_record, trace_ring,
)
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport (
    BUSY_POLL_NONE, BUSY_POLL_SUSPEND, CORE_PENDING_BACKLOG, COUNTERS_MAX, NO_RUNNER, STEERING_RPS,
    TOKEN_FREE, TOKEN_RANK, TOKEN_SUSPENDED, COUNTER_busy_polls, COUNTER_dma_ring_full,
    COUNTER_interrupts, COUNTER_polls, COUNTER_rps_backlog_full, COUNTER_rps_interrupts,
    COUNTER_rps_steered, COUNTER_suspensions, agent_paid, core_interrupts, frame_slot,
    node_backlog, node_core, node_handled, node_rx_ring, node_vector,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport frame_endpoint

from shrimpmx.errors import InputError


# Frames handed back to the NIC at a time: few stores to the line that it reads, and a
# full rx ring is relieved before the poll ends.
cdef enum:
    CONSUME_BATCH_PACKETS = 16


@cython.final
cdef class RxPoll:
    """Polls the rings of `core` of `node`, at most `budget` frames at a time; it counts in agent
    record `agent`.

    A host whose `prices` charge for frames handles one a step, once its cost is over; what is
    handed on to other cores is theirs to pay.
    """

    def __init__(self, Node node not None, uint32_t core, uint32_t agent, uint32_t budget,
                 Prices prices):
        self.handler = ReceiveHandler(node, core, agent)
        self.header = node.header
        self.core = core
        self.budget = budget
        self.prices = prices
        self.meter = meter_of(prices, agent_paid(node.control._checked_agent(agent)))
        self.pays = charges_frames(prices)
        self.batch = 1 if self.pays else CONSUME_BATCH_PACKETS
        self.counters = <uint64_t *>node.control._checked_agent(agent).counters
        if node.header.dma_runner != NO_RUNNER:
            self.handler.context.copies = &self.handler.copies
        self.steers = node.header.steering == STEERING_RPS
        if self.steers:
            self.steering = PacketSteering(node, core, agent)

    cdef bint poll(self, uint32_t number, int64_t now_ns) noexcept nogil:
        cdef ring *rx = self._ring(number)
        cdef uint32_t position = self._open(number, rx)
        cdef bint goes_on = self.goes_on
        cdef uint32_t count
        self.goes_on = False
        if not goes_on:
            if self.pays:
                self._begin_paid(number)
            self.polled = 0
            self.counters[COUNTER_polls] += 1
            trace_record(self.trace, self.handler.now_ns, TRACE_poll_begin, number, self.budget)
        while self.polled < self.budget:
            count = ring_available_from(rx, position, self.batch)
            count = min(count, min(self.batch, self.budget - self.polled))
            if count == 0:
                break
            if not self._handle(number, rx, position, count, now_ns):
                self.goes_on = True
                return False
            position += count
            self._hand_back(number, rx, position)
            self.polled += count
            if goes_on:  # the one frame of this step
                self.handler.finish_frame()
                goes_on = False
            if self.handler.owes_reply():
                self.handler.finish_frame()
                self.until_ns = now_ns
                self.goes_on = True
                return False
        self._end(number)
        return True

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

    cdef bint _handle(self, uint32_t number, ring *rx, uint32_t position, uint32_t count,
                      int64_t now_ns) noexcept nogil:
        """Handles `count` frames, or hands them on; false if the one frame is to be paid first."""
        if self.steers and number != BACKLOG:
            return self._spread(rx, position, count, now_ns)
        if self.pays and not self._is_paid(rx, position, now_ns):
            return False
        self.handler.handle_slots(rx, position, count)
        return True

    cdef bint _spread(self, ring *rx, uint32_t position, uint32_t count,
                      int64_t now_ns) noexcept nogil:
        """The same, of frames of which some are other cores'."""
        cdef uint32_t index
        for index in range(count):
            # One that was paid for was not handed on before.
            if not self.paid and self.steering.hand_on(
                    <const frame_slot *>ring_slot(rx, position + index)):
                continue
            if self.pays and not self._is_paid(rx, position + index, now_ns):
                return False
            self.handler.handle_slots(rx, position + index, 1)
        return True

    cdef void _begin_paid(self, uint32_t number) noexcept nogil:
        """The poll's own costs are paid with its first frame."""
        self.poll_is_due, self.is_cold = True, False
        self.taken = NULL if number == BACKLOG else node_vector(self.header, number)

    cdef bint _is_paid(self, ring *rx, uint32_t position, int64_t now_ns) noexcept nogil:
        """Whether a frame may be handled now; if not, its time begins."""
        self.paid = not self.paid
        if not self.paid:
            return True
        self.until_ns = now_ns + pay_frame(
            &self.meter, self.header, self.core + 1, self.handler.context.copies != NULL,
            <const frame_slot *>ring_slot(rx, position))
        if self.poll_is_due:
            self.poll_is_due = False
            self.until_ns += pay_poll(&self.meter, self.taken, self.core + 1, &self.is_cold)
        if self.is_cold:
            self.until_ns += pay(&self.meter, COST_cold_packet_ns)
        return False

    cdef void _hand_back(self, uint32_t number, ring *rx, uint32_t position) noexcept nogil:
        """The slots up to `position` are the NIC's again, or once the dma agent has copied."""
        if self.handler.context.copies == NULL:
            ring_consume(rx, position - rx.tail)
            return
        # H1: for the NIC's and other handlers' look; the token carries the order of all else
        store_relaxed_u32(&node_vector(self.header, number).handled, position)
        if not copy_queue_end_batch(&self.handler.copies, position):
            self.counters[COUNTER_dma_ring_full] += 1

    cdef void _end(self, uint32_t number) noexcept nogil:
        if self.steers and number != BACKLOG:  # a backlog is filled with the token only
            self.steering.end_poll()
        self.handler.finish_batch()
        trace_record(self.trace, self.handler.now_ns, TRACE_poll_end, number, self.polled)


# -- A rank that polls the rx ring itself, instead of waiting for the interrupt handler.
#
# Two strategies rest on it. Under `watchdog` (Maquelin and others, ISCA 1996) the NIC raises an
# interrupt only for frames that no rank has polled within its delay. Under `irq-suspend` (Linux
# 6.13) a rank that finds something also keeps interrupts off until it looks in vain.
#
# The rank takes the vector's token as an irq agent does and runs the same receive handler, for the
# few frames of a busy poll. Of the token's ways see token.pxd. It works in the rank's process and
# in its priority, so what it uses is the rank's:
#
# - *tx ring*: nacks, pull requests and replies go out by the endpoint's own ring. A poll takes no
#   more frames than their answers have room there: nothing waits in a backlog that only this rank
#   would look after.
# - *counters*: the driver's count for the rank. Those of the receive handler (`recv_*`, `drop_*`)
#   and of polls count for the irq agent of its core. With one rx queue the token's holder writes
#   them, so there is one writer at a time; an irq agent writes no other counters of its record
#   without it but `timer_ticks` and the driver's. With several queues the irq agent may preempt the
#   rank, with another one's token: both are on one CPU, as no rank that polls is bound to more than
#   one core, and one instruction that adds is not torn there. Nor is what the irq agent adds where
#   the handler has real-time priority; else a count may be lost.
#
# A rank that is preempted in the middle of a poll keeps the token until it runs again, as a
# kernel's busy poll would not, which cannot be preempted: frames wait for so long. A rank that dies
# in the middle gives it up when its endpoint is closed for it (`close_dead`); frames that it has
# not handed back are handled again then, counts of those that it has are lost, and the next holder
# of the lock repairs what it held (`endpoint_lock_take`).

# Frames of one poll (Linux: BUSY_POLL_BUDGET).
cdef enum:
    BUDGET_PACKETS = 8


cdef class BusyPoll:
    """What a rank on `core` of `node` needs to poll the rx ring of `vector`, that of its endpoint.

    `suspend_timeout_ns`: how long frames may wait for a rank that has found some before
    (irq_suspend_timeout_ns). It belongs to the one endpoint that it is given to, whose rank pays
    for frames as an irq agent does.
    Raises InputError if the node offloads copies: the dma agent hands slots back then.
    """

    def __init__(self, Node node not None, uint32_t core, int64_t suspend_timeout_ns=0,
                 uint32_t vector=0):
        cdef uint32_t agent
        if node.header.dma_runner != NO_RUNNER:
            raise InputError(
                "ranks cannot poll rx rings while a dma agent copies from them; "
                "choose another coalescing strategy, or no copy_offload")
        if core >= node.header.cores_count:
            raise InputError(
                f"node {node.header.index} has no core {core}; its cores are 0 to "
                f"{node.header.cores_count - 1}"
            )
        if vector >= node.header.vectors_count:
            raise InputError(
                f"node {node.header.index} has no vector {vector}; its vectors are 0 to "
                f"{node.header.vectors_count - 1}"
            )
        agent = node_core(node.header, core).agent
        self.node = node
        self.suspend_timeout_ns = suspend_timeout_ns
        self.suspends = node.header.busy_poll == BUSY_POLL_SUSPEND
        self.handler = ReceiveHandler(node, core, agent)
        self.handler.vector = vector
        self.vector = node_vector(node.header, vector)
        self.rx = node_rx_ring(node.header, vector)
        self.watcher = token_watcher(node, self.vector)
        self.nic_slot = node.control.slot(node.header.nic_runner)
        self.irq_counters = <uint64_t *>node.control._checked_agent(agent).counters
        memset(self.counts, 0, sizeof(self.counts))
        self.handler.count_into(self.counts)

    cdef int bind(self, uint32_t runner, ring *tx, uint64_t *counters, wait_slot *slot,
                  Host host) except -1:
        self.host, self.pays = host, charges_frames(host.kept_prices)
        self.mine = <uint32_t>TOKEN_RANK + runner
        self.rank_counters = counters
        self.own_slot = slot
        transmit_open(&self.handler.port, self.node, tx)
        return 0

    def look_at(self, int64_t now_ns) -> int:
        """Look at `now_ns` (ns) and return how many frames were handled; for tests."""
        cdef uint32_t handled
        with nogil:
            handled = self.look(now_ns)
        return handled

    def is_ready(self) -> bool:
        """The look of a wait: whether a pass would handle frames; for tests."""
        return self.ready()

    cdef void use_trace(self, trace_ring *trace) noexcept:
        self.handler.trace = trace

    def use_capture(self, Capture capture not None, uint32_t end) -> None:
        """Note from now on which frames it drops, at end number `end`."""
        self.handler.capture = capture.checked_ring(end)
        self.capturing = capture

    cdef uint32_t look(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t seen, budget
        cdef uint32_t handled = 0
        self.found = False
        # A look in vain reads two words that change only when frames come and go.
        if load_acquire_u32(&self.rx.head) == load_relaxed_u32(&self.rx.tail):
            return 0
        budget = self._room()
        seen = load_relaxed_u32(&self.vector.token)
        if budget == 0 or not token_is_open(seen) or not token_take(self.vector, seen, self.mine):
            return 0
        handled = self._poll(now_ns, budget)
        if handled != 0:
            self.found = True
            self.counts[COUNTER_busy_polls] += 1
            if self.suspends and seen != TOKEN_SUSPENDED:
                self.counts[COUNTER_suspensions] += 1
        self._add_counts()
        self._hand_on(now_ns, seen)
        return handled

    cdef uint32_t _room(self) noexcept nogil:
        """Frames that may be handled: each may be a pull request, whose answer is a block."""
        cdef ring *tx = self.handler.port.tx
        cdef uint32_t block = max(self.node.header.geometry.pull_block_frames, <uint32_t>1)
        cdef uint32_t kept = tx.entries >> 3  # see reply_has_room
        cdef uint32_t free = ring_free(tx, kept + BUDGET_PACKETS * block)
        return min((free - kept) / block, <uint32_t>BUDGET_PACKETS) if free > kept else 0

    cdef uint32_t _poll(self, int64_t now_ns, uint32_t budget) noexcept nogil:
        cdef ring *rx = self.rx
        cdef uint32_t handled = 0, batch
        cdef bint is_cold = False
        self.handler.now_ns = self.handler.port.now_ns = now_ns
        while handled < budget:
            batch = min(ring_available_from(rx, rx.tail, budget - handled), budget - handled)
            if batch == 0:
                break
            if self.pays:
                batch = 1
                if handled == 0:
                    self.host.charge(pay_poll(
                        &self.host.meter, self.vector, self.handler.context.core, &is_cold))
                self.host.charge(
                    pay_frame(&self.host.meter, self.node.header, self.handler.context.core, False,
                              <const frame_slot *>ring_slot(rx, rx.tail))
                    + (pay(&self.host.meter, COST_cold_packet_ns) if is_cold else 0))
            self.handler.handle_slots(rx, rx.tail, batch)
            # A rank that dies before the end of this leaves the frames to be handled again: what
            # they woke is awake before they are gone.
            self.handler.finish_batch()
            ring_consume(rx, batch)
            handled += batch
        return handled

    cdef void _add_counts(self) noexcept nogil:
        """With the token."""
        cdef uint32_t index
        for index in range(<uint32_t>COUNTERS_MAX):
            # Only what was counted: the irq agent may write its `timer_ticks` meanwhile.
            if self.counts[index] == 0:
                continue
            if index < <uint32_t>COUNTER_interrupts:   # the first of the irq agent's own
                self.rank_counters[index] += self.counts[index]
            else:
                fetch_add_u64(&self.irq_counters[index], self.counts[index])
            self.counts[index] = 0

    cdef void _hand_on(self, int64_t now_ns, uint32_t seen) noexcept nogil:
        """The token, which was `seen` before, goes where it belongs after a poll."""
        if not self.suspends or (seen == TOKEN_FREE and not self.found):
            if token_free(self.vector):
                wait_slot_wake(self.nic_slot)
        elif self.found:
            self._suspend(now_ns)
        elif seen == TOKEN_SUSPENDED:
            token_suspend(self.vector, self.watcher)
        else:
            # Its timer may have come meanwhile, and found the token gone.
            token_resume(self.vector, self.mine, self.watcher)

    cdef void _suspend(self, int64_t now_ns) noexcept nogil:
        store_relaxed_u64(&self.vector.suspended_until_ns,
                          <uint64_t>(now_ns + self.suspend_timeout_ns))
        token_suspend(self.vector, self.watcher)

    cdef void keep_off(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t seen
        if not self.suspends:
            return
        self.found = True
        seen = load_relaxed_u32(&self.vector.token)
        if seen == TOKEN_SUSPENDED:
            # Without the token: an agent that takes it now read an older time: it looks sooner.
            store_relaxed_u64(&self.vector.suspended_until_ns,
                              <uint64_t>(now_ns + self.suspend_timeout_ns))
        elif token_is_open(seen) and token_take(self.vector, seen, self.mine):
            self.counts[COUNTER_suspensions] += 1
            self._add_counts()
            self._suspend(now_ns)

    cdef void resume(self) noexcept nogil:
        if load_relaxed_u32(&self.vector.token) == TOKEN_SUSPENDED:
            token_resume(self.vector, TOKEN_SUSPENDED, self.watcher)

    cdef bint ready(self) noexcept nogil:
        if (load_acquire_u32(&self.rx.head) != load_relaxed_u32(&self.rx.tail)
                and token_is_open(load_relaxed_u32(&self.vector.token)) and self._room() != 0):
            return True
        # Armed: this is the look before the sleep, and the last. What comes later is
        # the interrupt's, or found by the irq agent's timer; both see the slot armed (W2).
        if self.own_slot != NULL and load_relaxed_u32(&self.own_slot.armed) != WAIT_SLOT_IDLE:
            self.resume()
        return False


# -- Software steering (Linux: Receive Packet Steering): one rx queue, many cores.
#
# The handler that polls the queue looks at each frame only so far as to see which endpoint it is
# for, and copies it into the backlog of the core whose turn that endpoint is; at the end of its
# poll it interrupts those cores, once each. Their handlers poll their backlogs as they would a
# queue.
#
# A backlog has one producer at a time, the holder of vector 0's token, and its count of filled
# slots passes with the token: all is published before the token is given back. Its consumer is its
# core.
#
# So all frames of an endpoint are handled by one core in the order in which they came, whichever
# cores take turns at the queue. A core that polls the queue handles its own frames at once, unless
# others have left it frames before: these come first, so its own go behind them.

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil


cdef class PacketSteering:
    """What the handler of `core` needs to hand on frames; `agent`: the record that it counts in.

    Raises InputError if the node offloads copies, whose data stays in the queue's slots, or if
    ranks poll, which have no core to hand frames to them.
    """

    def __init__(self, Node node not None, uint32_t core, uint32_t agent):
        if node.header.dma_runner != NO_RUNNER:
            raise InputError(
                "steering 'rps' copies frames out of the rx ring, and a dma agent copies from it; "
                "choose another steering, or no copy_offload")
        if node.header.busy_poll != BUSY_POLL_NONE:
            raise InputError(
                "steering 'rps' needs interrupt handlers, and this coalescing lets ranks poll; "
                "choose another steering, or another coalescing strategy")
        self.node = node
        self.header = node.header
        self.core = core
        self.counters = <uint64_t *>node.control._checked_agent(agent).counters
        for number in range(node.header.cores_count):
            if node.header.rps_cores >> number & 1:
                self.cores[self.cores_count] = number
                self.cores_count += 1

    cdef bint hand_on(self, const frame_slot *slot) noexcept nogil:
        cdef int endpoint = frame_endpoint(slot.frame, slot.length)
        cdef uint32_t core
        cdef ring *own
        if endpoint < 0:
            return False
        core = self.cores[<uint32_t>endpoint % self.cores_count]
        if core == self.core:
            own = node_backlog(self.header, core)
            # Both ends are this core's while it has the token. What is left there is known to it:
            # its interrupt is on its way, or taken and not at its end.
            if own.reserved == own.tail:
                return False
            self._append(core, slot)
        elif self._append(core, slot):
            self.handed_to |= <uint64_t>1 << core
            self.counters[COUNTER_rps_steered] += 1
        return True

    cdef bint _append(self, uint32_t core, const frame_slot *slot) noexcept nogil:
        """Copies a frame into the backlog of `core`; false if that was full."""
        cdef ring *backlog = node_backlog(self.header, core)
        if ring_free(backlog, 1) == 0:
            self.counters[COUNTER_rps_backlog_full] += 1
            return False
        memcpy(ring_next(backlog), slot, sizeof(frame_slot) + slot.length)
        ring_fill(backlog)
        return True

    cdef void end_poll(self) noexcept nogil:
        cdef core_interrupts *interrupts
        cdef uint32_t core
        ring_publish(node_backlog(self.header, self.core))
        while self.handed_to != 0:
            core = __builtin_ctzll(self.handed_to)
            self.handed_to &= self.handed_to - 1
            interrupts = node_core(self.header, core)
            ring_publish(node_backlog(self.header, core))
            # I2: the frames before the interrupt; pairs with the irq agent's I2'.
            if fetch_or_u64(&interrupts.pending, CORE_PENDING_BACKLOG) & CORE_PENDING_BACKLOG:
                continue  # the one before is not taken yet
            self.counters[COUNTER_rps_interrupts] += 1
            wait_slot_wake(self.node.control.slot(interrupts.runner))
