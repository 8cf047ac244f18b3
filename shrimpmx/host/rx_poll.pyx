"""One poll of a ring: its frames go through the receive handler, up to a budget (NAPI's weight).

With software steering (RPS) the handler that polls the rx ring hands frames on to other cores, and
each core polls its backlog, too; see rps.pyx.
"""

cimport cython
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, meter_of, pay
from shrimpmx.costs.rows cimport COST_cold_packet_ns, COST_handler_poll_ns
from shrimpmx.host.charges cimport charges_frames, pay_frame
from shrimpmx.host.copy_queue cimport copy_queue_end_batch, copy_queue_open
from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.host.rps cimport PacketSteering
from shrimpmx.native.atomics cimport load_relaxed_u32, store_relaxed_u32
from shrimpmx.native.ring cimport ring, ring_available_from, ring_consume, ring_slot
from shrimpmx.native.trace cimport TRACE_poll_begin, TRACE_poll_end, trace_record
from shrimpmx.shared.layout cimport (
    COUNTER_dma_ring_full, COUNTER_polls, NO_RUNNER, STEERING_RPS, agent_paid, frame_slot,
    interrupt_vector, node_backlog, node_handled, node_rx_ring, node_vector,
)
from shrimpmx.shared.node cimport Node

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
        """The poll's own costs, which are paid with its first frame; each frame is cold, if another
        core has polled the ring last."""
        cdef interrupt_vector *vector
        self.poll_is_due = True
        if number == BACKLOG:
            return
        vector = node_vector(self.header, number)
        self.is_cold = vector.polled_by != 0 and vector.polled_by != self.core + 1
        vector.polled_by = <uint16_t>(self.core + 1)

    cdef bint _is_paid(self, ring *rx, uint32_t position, int64_t now_ns) noexcept nogil:
        """Whether a frame may be handled now; if not, its time begins."""
        self.paid = not self.paid
        if not self.paid:
            return True
        self.until_ns = now_ns + pay_frame(
            &self.meter, self.header, self.core + 1, self.handler.context.copies != NULL,
            <const frame_slot *>ring_slot(rx, position))
        if self.is_cold:
            self.until_ns += pay(&self.meter, COST_cold_packet_ns)
        if self.poll_is_due:
            self.poll_is_due = False
            self.until_ns += pay(&self.meter, COST_handler_poll_ns)
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
