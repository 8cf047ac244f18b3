"""A rank that polls the rx ring itself, instead of waiting for the interrupt handler.

Two strategies rest on it. Under `watchdog` (Maquelin and others, ISCA 1996) the NIC raises an
interrupt only for frames that no rank has polled within its delay. Under `irq-suspend` (Linux
6.13) a rank that finds something also keeps interrupts off until it looks in vain.

The rank takes the vector's token as an irq agent does and runs the same receive handler, for the
few frames of a busy poll. Of the token's ways see token.pxd. It works in the rank's process and in
its priority, so what it uses is the rank's:

- *tx ring*: nacks, pull requests and replies go out by the endpoint's own ring. A poll takes no
  more frames than their answers have room there: nothing waits in a backlog that only this rank
  would look after.
- *counters*: the driver's count for the rank. Those of the receive handler (`recv_*`, `drop_*`) and
  of polls count for the irq agent of its core. With one rx queue the token's holder writes them,
  so there is one writer at a time; an irq agent writes no other counters of its record without it
  but `timer_ticks` and the driver's. With several queues the irq agent may preempt the rank, with
  another one's token: both are on one CPU, as no rank that polls is bound to more than one core,
  and one instruction that adds is not torn there. Nor is what the irq agent adds where the handler
  has real-time priority; else a count may be lost.

A rank that is preempted in the middle of a poll keeps the token until it runs again, as a kernel's
busy poll would not, which cannot be preempted: frames wait for so long. A rank that dies in the
middle gives it up when its endpoint is closed for it (`close_dead`); frames that it has not handed
back are handled again then, counts of those that it has are lost, and the next holder of the lock
repairs what it held (`endpoint_lock_take`).
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from shrimpmx.host.charges cimport charges_frames, pay_frame
from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.host.token cimport (
    token_free, token_is_open, token_resume, token_suspend, token_take, token_watcher,
)
from shrimpmx.host.transmit cimport transmit_open
from shrimpmx.native.atomics cimport (
    fetch_add_u64, load_acquire_u32, load_relaxed_u32, store_relaxed_u64,
)
from shrimpmx.native.capture cimport Capture
from shrimpmx.native.futex cimport WAIT_SLOT_IDLE, wait_slot, wait_slot_wake
from shrimpmx.native.ring cimport ring, ring_available_from, ring_consume, ring_free, ring_slot
from shrimpmx.native.trace cimport trace_ring
from shrimpmx.shared.layout cimport (
    BUSY_POLL_SUSPEND, COUNTER_busy_polls, COUNTER_interrupts, COUNTER_suspensions, COUNTERS_MAX,
    NO_RUNNER, TOKEN_FREE, TOKEN_RANK, TOKEN_SUSPENDED, frame_slot, node_core, node_rx_ring,
    node_vector,
)
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError

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
        self.handler.now_ns = self.handler.port.now_ns = now_ns
        while handled < budget:
            batch = min(ring_available_from(rx, rx.tail, budget - handled), budget - handled)
            if batch == 0:
                break
            if self.pays:
                batch = 1
                self.host.charge(pay_frame(
                    &self.host.meter, self.node.header, self.handler.context.core, False,
                    <const frame_slot *>ring_slot(rx, rx.tail)))
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
