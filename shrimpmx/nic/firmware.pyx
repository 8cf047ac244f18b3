"""The firmware of an Ethernet NIC: one agent per emulated node.

Down: see port.pyx. Up: incoming frames are steered to an rx queue and go by DMA into its
ring, and the queue's coalescing policy says when the host is to be interrupted.

The way up is a discrete-event loop. Arrivals, completed DMAs and the coalescing deadlines are
handled in order of the times at which they are due, and told to the policies with those
times: what a policy decides does not depend on when the process happened to run, and is the
same under a virtual clock. At one time an arrival comes before a completion, which comes
before a deadline. Frames and slots are published once per step, or before an interrupt.

Where completed sends interrupt, they are events of that loop too, between completed DMAs and
deadlines: frames that have left the NIC. The first rx queue's policy is told.

Of several queues only those are looked at to which something happens: bit masks say which, the DMA
engine knows whose packet is next, and of the deadlines the first is kept.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.link.ends cimport Egress, Ingress, incoming_frame
from shrimpmx.link.rate cimport rate_line_initialise
from shrimpmx.native.atomics cimport store_release_u32
from shrimpmx.native.capture cimport capture_drop
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.trace cimport (
    TRACE_dma_complete, TRACE_irq_deferred, TRACE_rx_frame, Trace, trace_record,
)
from shrimpmx.nic.coalescing cimport CAUSE_NONE, Cause
from shrimpmx.nic.dma cimport dma_behind, dma_complete, dma_first, dma_has_room, dma_submit
from shrimpmx.nic.flow_table cimport FlowTable
from shrimpmx.nic.interrupt_line cimport InterruptLine
from shrimpmx.nic.port cimport EVENTS_PER_STEP, Port, take_arrival
from shrimpmx.nic.rx_queue cimport RxQueue
from shrimpmx.nic.sends cimport sends_add, sends_complete, sends_initialise
from shrimpmx.nic.steering cimport Steering
from shrimpmx.shared.layout cimport (
    AGENT_NIC, COUNTER_rx_bytes, COUNTER_rx_drop_ring_full, COUNTER_rx_marked, COUNTER_rx_packets,
    COUNTER_steps, COUNTER_tx_completed, STEERING_ARFS, frame_slot,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.frame_endpoint cimport NO_ENDPOINT, frame_endpoint
from shrimpmx.wire.mark cimport frame_marked
from shrimpmx.wire.packet_word cimport trace_packet

from shrimpmx.nic.names import make_policies
from shrimpmx.nic.timers import start_timers

cdef extern from *:
    int __builtin_ctz(unsigned int) noexcept nogil


@cython.final
cdef class Firmware(Port):
    """The NIC of `node`.

    Args:
        egress, ingress: the ends of its links.
        parameters: `NicParameters`.
        policy: a `CoalescingPolicy` or a user's `Policy`; or what makes one for each rx queue, of
            which there must be one only else; or None for the one that the parameters name.
        dilation: how much longer than real hardware's times are that the parameters do not
            give: those of the adaptive policies' rates and profiles.
        seed: the run's, from which the clock of its free-running timers is drawn; None: that is
            the run's clock.
    """

    def __init__(self, Node node, Egress egress, Ingress ingress, parameters, policy=None,
                 double dilation=1.0, seed=None):
        cdef RxQueue queue
        Port.__init__(self, node, egress, ingress)
        self.queues_count = self.header.vectors_count
        policies = make_policies(
            parameters if policy is None else policy, self.queues_count, dilation
        )
        if seed is not None:
            start_timers(policies, parameters, seed, node.index)
        self.queues = tuple(
            RxQueue(self.node, number, one, not parameters.mark_resets_timer)
            for number, one in enumerate(policies)
        )
        sends_initialise(&self.sends)
        if self.header.sent.interrupts:
            queue = self.queues[0]
            self.sends_line = InterruptLine(
                self.node, 0, queue.policy, self.header.nic_agent, of_sends=True)
        self.steering = Steering(self.node)
        self.flows = FlowTable(self.node, self.header.nic_agent)
        self.follows = self.header.steering == STEERING_ARFS
        self.deadline_ns = NEVER_NS
        for queue in self.queues:
            self.queue_at[queue.number] = <void *>queue
            self.note_policy(queue)
        self.make_dma(parameters)

    def make_dma(self, parameters):
        """Set up the DMA engine, with room for the rx rings' slots."""
        cdef RxQueue queue
        cdef uint32_t slots = 0
        cdef uint32_t room = 1
        for queue in self.queues:
            self.dma.queues[queue.number].frames = queue.frames
            slots += queue.frames.entries
        while room < slots:
            room *= 2
        free(self.dma.order)
        self.dma.order = <uint8_t *>calloc(room, 1)
        if self.dma.order == NULL:
            raise MemoryError()
        self.dma.order_mask = room - 1
        self.dma.latency_ns = parameters.dma_latency_ns
        self.dma.due_ns = NEVER_NS
        rate_line_initialise(&self.dma.line, parameters.dma_bytes_per_second, 1)

    def __dealloc__(self):
        free(self.dma.order)

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what the NIC does, in the ring of agent `number`."""
        cdef RxQueue queue
        Port.use_trace(self, trace, number)
        for queue in self.queues:
            queue.line.trace = self.trace
        if self.sends_line is not None:
            self.sends_line.trace = self.trace

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef int done = self.settle(now_ns)
        self.counters[COUNTER_steps] += 1
        done += self.send(now_ns)
        done += self.receive(now_ns)
        self.end_queues()
        self.ingress.finish_all()   # they are copied
        self.ingress.hand_back()
        self.end_step(now_ns, min(self.sends.due_ns, min(self.dma.due_ns, self.deadline_ns)))
        self.keeps_waiting = self.handler_waits()
        return done

    # -- down --------------------------------------------------------------------

    cdef bint forward(self, const void *slot, int64_t now_ns) noexcept nogil:
        if not Port.forward(self, slot, now_ns):
            return False
        if self.sends_line is not None:
            sends_add(&self.sends, max(now_ns, self.egress.sent_ns))
        return True

    cdef void end_send(self, RxQueue queue) noexcept nogil:
        """Frames have left: ask the policy of `queue`, the first, whether to say so."""
        cdef int64_t time_ns = self.reached(self.sends.due_ns)
        cdef uint32_t count = sends_complete(&self.sends)
        cdef Cause cause
        self.counters[COUNTER_tx_completed] += count
        store_release_u32(&self.header.sent.count, self.header.sent.count + count)
        cause = queue.policy.on_send_complete(time_ns)
        if cause != CAUSE_NONE:
            self.sends_line.request(time_ns, cause)
        self.note_policy(queue)

    # -- the way up ------------------------------------------------------------

    cdef int receive(self, int64_t now_ns) noexcept nogil:
        """Handle the events that are due, in order of their times; returns how many."""
        cdef int done = 0
        cdef int64_t arrival_ns, others_ns
        self.ingress.look(now_ns)
        while done < EVENTS_PER_STEP:
            arrival_ns = self.ingress.arrival_ns
            others_ns = min(self.sends.due_ns, self.deadline_ns)
            if arrival_ns <= self.dma.due_ns and arrival_ns <= others_ns:
                if arrival_ns > now_ns:
                    break
                self.arrive()
            elif self.dma.due_ns <= others_ns:
                if self.dma.due_ns > now_ns:
                    break
                self.complete(<RxQueue>self.queue_at[dma_first(&self.dma)])
            elif self.sends.due_ns <= self.deadline_ns:
                if self.sends.due_ns > now_ns:
                    break
                self.end_send(<RxQueue>self.queue_at[0])
            else:
                if self.deadline_ns > now_ns:
                    break
                self.expire(<RxQueue>self.queue_at[self.deadline_queue])
            done += 1
        return done

    cdef void arrive(self) noexcept nogil:
        """A frame is here: reserve its place in its queue's ring and start its DMA, or drop it."""
        cdef int64_t time_ns = self.reached(self.ingress.arrival_ns)
        cdef int endpoint = NO_ENDPOINT
        cdef uint32_t number = 0
        cdef incoming_frame arrived
        cdef frame_slot *slot
        take_arrival(self, time_ns, &arrived)
        if arrived.frame == NULL:
            return
        if self.queues_count > 1:
            endpoint = frame_endpoint(arrived.frame, arrived.length)
            number = self.steer(endpoint, &arrived)
        if not dma_has_room(&self.dma, number):
            self.counters[COUNTER_rx_drop_ring_full] += 1
            self.trace_drop(time_ns, COUNTER_rx_drop_ring_full)
            capture_drop(self.ingress.capture, arrived.captured, AGENT_NIC,
                         COUNTER_rx_drop_ring_full)
            return
        trace_packet(self.trace, time_ns, TRACE_rx_frame, arrived.frame, arrived.length)
        slot = dma_submit(&self.dma, number, time_ns, arrived.frame, arrived.length)
        if self.ingress.capture != NULL:
            slot.captured = arrived.captured
        if endpoint != NO_ENDPOINT:
            self.flows.passed(endpoint, number, dma_behind(&self.dma, number))
        (<RxQueue>self.queue_at[number]).policy.on_arrival(
            time_ns, frame_marked(arrived.frame), arrived.length
        )
        self.note_policy(<RxQueue>self.queue_at[number])

    cdef uint32_t steer(self, int endpoint, const incoming_frame *arrived) noexcept nogil:
        """The queue that a frame goes to."""
        if self.follows and endpoint != NO_ENDPOINT:
            self.flows.follow(endpoint)
        return self.steering.queue(endpoint, arrived.frame, arrived.length)

    cdef void complete(self, RxQueue queue) noexcept nogil:
        """A frame is in host memory: ask the policy whether to say so."""
        cdef int64_t time_ns = self.reached(self.dma.due_ns)
        cdef frame_slot *slot = dma_complete(&self.dma)
        cdef uint32_t pending = self.dma.queues[queue.number].pending
        cdef bint marked = frame_marked(slot.frame)
        cdef uint64_t deferrals = queue.policy.deferrals
        cdef Cause cause
        self.counters[COUNTER_rx_packets] += 1
        self.counters[COUNTER_rx_bytes] += slot.length
        self.counters[COUNTER_rx_marked] += marked
        trace_packet(self.trace, time_ns, TRACE_dma_complete, slot.frame,
                     <uint64_t>queue.number << 32 | slot.length)
        cause = queue.policy.on_dma_complete(time_ns, marked, pending)
        if self.trace != NULL and queue.policy.deferrals != deferrals:
            trace_record(self.trace, time_ns, TRACE_irq_deferred, queue.number, pending)
        if cause != CAUSE_NONE:
            queue.line.request(time_ns, cause)
            self.note_line(queue)
        self.note_policy(queue)

    cdef void expire(self, RxQueue queue) noexcept nogil:
        """The first of the coalescing deadlines has come."""
        cdef int64_t time_ns = self.reached(self.deadline_ns)
        cdef Cause cause = queue.policy.on_deadline(time_ns)
        if cause != CAUSE_NONE:
            self.request(queue, time_ns, cause)
            self.note_line(queue)
        self.note_policy(queue)

    cdef void request(self, RxQueue queue, int64_t time_ns, Cause cause) noexcept nogil:
        """An interrupt for all that the host does not know of, which one reports if it can."""
        cdef bint sends = (
            queue.number == 0 and self.sends_line is not None and self.sends_line.has_report())
        if sends and not queue.line.has_report():
            self.sends_line.request(time_ns, cause)
        elif not queue.line.request(time_ns, cause) and sends:
            self.sends_line.request(time_ns, cause)

    # -- the queues --------------------------------------------------------------

    cdef int settle(self, int64_t now_ns) noexcept nogil:
        """See what became of remembered wishes; returns how many have ended."""
        cdef int done = 0
        cdef uint32_t left = self.wishing
        cdef uint32_t number
        cdef int64_t events_ns
        if left == 0 and (self.sends_line is None or not self.sends_line.wished):
            return 0
        # Not beyond events that are due, and not before those that are over.
        events_ns = min(self.ingress.arrival_ns, min(self.dma.due_ns, self.deadline_ns))
        events_ns = max(self.event_ns, min(now_ns, min(self.sends.due_ns, events_ns)))
        while left != 0:
            number = __builtin_ctz(left)
            left &= left - 1
            done += (<RxQueue>self.queue_at[number]).line.settle(now_ns, events_ns)
            self.note_line(<RxQueue>self.queue_at[number])
            self.note_policy(<RxQueue>self.queue_at[number])
        if self.sends_line is not None:
            done += self.sends_line.settle(now_ns, events_ns)
            self.note_policy(<RxQueue>self.queue_at[0])
        return done

    cdef void note_line(self, RxQueue queue) noexcept nogil:
        """A queue's line was called, and may have called its policy."""
        cdef uint32_t bit = <uint32_t>1 << queue.number
        self.wishing = self.wishing & ~bit | (bit if queue.line.wished else 0)
        self.sharing_cpu = self.sharing_cpu & ~bit | (
            bit if queue.line.shares_nic_cpu or queue.line.backlogs_on_nic_cpu != 0 else 0)

    cdef void note_policy(self, RxQueue queue) noexcept nogil:
        """A queue's policy was called."""
        self.touched |= <uint32_t>1 << queue.number
        if queue.policy.deadline_ns != self.deadlines_ns[queue.number]:
            self.note_deadline(queue)

    cdef void note_deadline(self, RxQueue queue) noexcept nogil:
        """Keep the first deadline. Only if it was this queue's, and is later now, others are
        looked at."""
        cdef int64_t due_ns = queue.policy.deadline_ns
        cdef uint32_t number
        self.deadlines_ns[queue.number] = due_ns
        if due_ns <= self.deadline_ns:
            self.deadline_ns = due_ns
            self.deadline_queue = queue.number
        elif queue.number == self.deadline_queue:
            self.deadline_ns = due_ns
            for number in range(self.queues_count):
                if self.deadlines_ns[number] < self.deadline_ns:
                    self.deadline_ns = self.deadlines_ns[number]
                    self.deadline_queue = number

    cdef void end_queues(self) noexcept nogil:
        """End the step for the queues to which something happened."""
        cdef uint32_t left = self.touched
        cdef uint32_t number
        self.touched = 0
        while left != 0:
            number = __builtin_ctz(left)
            left &= left - 1
            (<RxQueue>self.queue_at[number]).end_step(self.counters)
            if (<RxQueue>self.queue_at[number]).policy.failed:
                with gil:
                    if self.failure is None:
                        self.failure = self.queues[number].policy.failure

    cdef bint handler_waits(self) noexcept nogil:
        """Whether the handler of some queue has work that it cannot do while the NIC runs."""
        cdef uint32_t left = self.sharing_cpu
        if self.sends_line is not None and self.sends_line.handler_waits():
            return True
        while left != 0:
            if (<RxQueue>self.queue_at[__builtin_ctz(left)]).line.handler_waits():
                return True
            left &= left - 1
        return False
