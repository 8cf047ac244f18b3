"""Native MX's NIC: the firmware handles packets itself, without the host.

Down: Port. Up: a frame is dealt with when its DMA is over, in order of arrival, by the
receive handler that hosts run under Open-MX: it posts the event and puts the data into the
receive queue or the region, answers pull requests, and wakes the ranks. There is no rx ring, no
interrupt and no copy by a driver.

What the handler counts goes to the agent record that the node's cores name, of kind irq: only
the NIC drives it. What it sends goes through the tx ring of core 0, which the NIC empties in
the same step.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free

from shrimpmx.host.pull_backlog cimport pull_tick_ns
from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.link.ends cimport Egress, Ingress, incoming_frame
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.trace cimport Capture, TRACE_dma_complete, TRACE_rx_frame, Trace
from shrimpmx.nic.dma cimport (
    held_add, held_finish, held_first, held_frame, held_has_room, held_initialise,
)
from shrimpmx.nic.firmware cimport EVENTS_PER_STEP, Port, take_arrival
from shrimpmx.nic.interrupt_line cimport shares_cpu
from shrimpmx.shared.layout cimport (
    COUNTER_mx_handled, COUNTER_rx_bytes, COUNTER_rx_marked, COUNTER_rx_packets, COUNTER_steps,
    COUNTER_timer_ticks, node_core,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.wire cimport frame_marked


cdef class MxFirmware(Port):
    """The NIC of `node`, whose cores' agent record counts what its handler does.

    Args:
        egress, ingress: the ends of its links.
        parameters: `NicParameters`; those of the DMA count.
    """

    def __init__(self, Node node, Egress egress, Ingress ingress, parameters):
        Port.__init__(self, node, egress, ingress)
        self.handler = ReceiveHandler(self.node, None, node_core(self.header, 0).agent)
        self.handled = self.handler.counters
        # The NIC is awake when its handler sends.
        self.handler.port.doorbell = &self.doorbell
        self.tick_ns = pull_tick_ns(self.header)
        self.next_due_ns = self.next_tick_ns = 0
        free(self.held.frames)
        if not held_initialise(&self.held, parameters.firmware_ns, parameters.dma_latency_ns,
                               parameters.dma_bytes_per_second):
            raise MemoryError()

    def __dealloc__(self):
        free(self.held.frames)

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what the NIC does, in the ring of agent `number`, and what its
        handler does, in that of the agent that counts for it."""
        Port.use_trace(self, trace, number)
        self.handler.trace = trace.checked_ring(node_core(self.header, 0).agent)

    def use_capture(self, Capture capture not None, uint32_t end) -> None:
        """Keep from now on the frames that pass its end of the link, number `end`."""
        Port.use_capture(self, capture, end)
        self.handler.capture = self.ingress.capture

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef int done = self.send(now_ns)
        self.counters[COUNTER_steps] += 1
        self.handler.now_ns = now_ns
        done += self.receive(now_ns)
        self.ingress.hand_back()
        self.keeps_waiting = self.rank_waits()
        if now_ns >= self.next_tick_ns:
            self.tick(now_ns)
        # Also pull replies that wait for room: the ring may have been emptied above.
        self.handler.finish_batch()
        done += self.send_from(self.tx_rings[0], now_ns)
        self.end_step(now_ns, min(self.held.due_ns, self.next_tick_ns))
        return done

    cdef int receive(self, int64_t now_ns) noexcept nogil:
        """Handle the events that are due, in order of their times; returns how many."""
        cdef int done = 0
        cdef int64_t arrival_ns, time_ns
        cdef incoming_frame arrived
        self.ingress.look(now_ns)
        while done < EVENTS_PER_STEP:
            arrival_ns = self.ingress.arrival_ns if held_has_room(&self.held) else NEVER_NS
            if min(arrival_ns, self.held.due_ns) > now_ns:
                break
            if arrival_ns <= self.held.due_ns:
                time_ns = self.reached(arrival_ns)
                take_arrival(self, time_ns, &arrived)
                if arrived.frame != NULL:
                    trace_packet(self.trace, time_ns, TRACE_rx_frame, arrived.frame,
                                 arrived.length)
                held_add(&self.held, &arrived, time_ns)
            else:
                self.complete()
            done += 1
        return done

    cdef void complete(self) noexcept nogil:
        """The first frame's DMA is over: the firmware handles it."""
        cdef held_frame *first = held_first(&self.held)
        cdef int64_t time_ns = self.reached(first.due_ns)
        cdef const uint8_t *frame = first.arrived.frame
        cdef uint32_t length = first.arrived.length
        if frame != NULL:
            self.counters[COUNTER_rx_packets] += 1
            self.counters[COUNTER_rx_bytes] += length
            self.counters[COUNTER_rx_marked] += frame_marked(frame)
            self.counters[COUNTER_mx_handled] += 1
            trace_packet(self.trace, time_ns, TRACE_dma_complete, frame, length)
            self.handler.frame_time_ns = time_ns
            if self.handler.capture != NULL:
                self.handler.captured = first.arrived.captured
            self.handler.handle(frame, length)
        held_finish(&self.held, self.ingress)

    cdef void tick(self, int64_t now_ns) noexcept nogil:
        """The firmware's clock: it looks after pulls whose replies do not come."""
        if self.next_tick_ns != 0:
            self.handled[COUNTER_timer_ticks] += 1
            self.handler.tick(now_ns)
        self.next_tick_ns = now_ns + self.tick_ns

    cdef bint rank_waits(self) noexcept nogil:
        """A rank on the NIC's CPU has got events, which it cannot look at while the NIC goes on
        with the burst that brought them."""
        if self.held.count == 0 and self.ingress.arrival_ns == NEVER_NS:
            self.rank_got_events = False
        elif not self.rank_got_events:
            self.rank_got_events = self.filled_on_nic_cpu()
        return self.rank_got_events

    cdef bint filled_on_nic_cpu(self) noexcept nogil:
        """Whether a rank on the NIC's CPU has got an event in this step."""
        cdef uint32_t index
        if (self.handler.locked >= 0 and self.handler.filled
                and shares_cpu(self.node, self.handler.descriptor.runner)):
            return True
        for index in range(self.handler.wakes_count):
            if shares_cpu(self.node, self.handler.wakes[index]):
                return True
        return False
