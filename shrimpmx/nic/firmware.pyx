"""The firmware of an Ethernet NIC: one agent per emulated node.

Down: Port. Up: incoming frames are steered to an rx queue and go by DMA into its
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
from libc.string cimport memcmp, memcpy, memset

from shrimpmx.link.ends cimport Egress, Ingress, incoming_frame
from shrimpmx.link.line cimport rate_line_initialise
from shrimpmx.native.atomics cimport load_relaxed_u32, prefetch_read, store_release_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_available, ring_consume, ring_publish, ring_slot
from shrimpmx.native.trace cimport (
    Capture, TRACE_dma_complete, TRACE_drop, TRACE_irq_deferred, TRACE_irq_timer, TRACE_rx_frame,
    TRACE_tx_frame, Trace, capture_drop, capture_ring, capture_write, trace_record,
)
from shrimpmx.nic.dma cimport (
    dma_behind, dma_complete, dma_first, dma_has_room, dma_submit, sends_add, sends_complete,
    sends_initialise, sends_run,
)
from shrimpmx.nic.interrupt_line cimport InterruptLine
from shrimpmx.nic.steering cimport FlowTable, Steering
from shrimpmx.nic.strategies cimport CAUSE_NONE, Cause, CoalescingPolicy
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport (
    AGENT_NIC, STEERING_ARFS, COUNTER_irq_deferred, COUNTER_irq_deferred_longest_ns,
    COUNTER_irq_deferred_packets, COUNTER_link_lost, COUNTER_rx_bad_fcs, COUNTER_rx_bad_frame,
    COUNTER_rx_bytes, COUNTER_rx_drop_ring_full, COUNTER_rx_marked, COUNTER_rx_packets,
    COUNTER_steps, COUNTER_tx_bad_frame, COUNTER_tx_bytes, COUNTER_tx_completed,
    COUNTER_tx_no_route, COUNTER_tx_packets, frame_slot, node_address, node_core_tx_ring,
    node_endpoint, node_endpoint_tx_ring, node_rx_ring,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.wire cimport (
    NO_ENDPOINT, WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, frame_endpoint, frame_marked, wire_head,
)

from shrimpmx.nic.names import make_policies
from shrimpmx.nic.names import start_timers


# -- What every NIC does: frames from the tx rings go out on the link, others come in from it.
#
# Down: the tx rings of the node's cores and endpoints in turn. Up: incoming frames in order of
# their times of arrival; what becomes of them is the subclass's business.

cdef uint32_t NO_NODE = 0xFFFFFFFF


cdef uint32_t node_of_address(const uint8_t *address) noexcept nogil:
    """The node with this hardware address, NO_NODE if it is not one of ours."""
    cdef uint8_t known[6]
    cdef uint32_t index = <uint32_t>address[4] << 8 | address[5]
    node_address(index, known)
    return index if memcmp(known, address, 6) == 0 else NO_NODE


cdef class Port(Agent):
    """The end of `node`'s links: base of the NICs. Subclasses override `step`."""

    def __init__(self, Node node not None, Egress egress not None, Ingress ingress not None):
        self.node = node
        self.header = self.node.header
        self.record = self.node.control.agent(self.header.nic_agent)
        self.counters = <uint64_t *>self.record.counters
        self.name = self.record.name.decode()
        self.egress = egress
        self.ingress = ingress
        self.find_rings()

    def find_rings(self):
        """Collect the tx rings."""
        cdef uint32_t i
        free(self.tx_rings)
        self.tx_rings_count = self.header.cores_count + self.header.endpoints_count
        self.tx_rings = <ring **>calloc(self.tx_rings_count, sizeof(ring *))
        if self.tx_rings == NULL:
            raise MemoryError()
        for i in range(self.header.cores_count):
            self.tx_rings[i] = node_core_tx_ring(self.header, i)
        for i in range(self.header.endpoints_count):
            self.tx_rings[self.header.cores_count + i] = node_endpoint_tx_ring(self.header, i)

    def __dealloc__(self):
        free(self.tx_rings)

    def use_capture(self, Capture capture not None, uint32_t end) -> None:
        """Keep from now on the frames that pass its end of the link, number `end`."""
        self.egress.use_capture(capture)
        self.ingress.use_capture(capture, end)

    # -- down ----------------------------------------------------------------

    cdef int send(self, int64_t now_ns) noexcept nogil:
        """Take frames from each tx ring in turn; returns how many."""
        cdef int done = 0
        cdef uint32_t position = self.tx_first
        cdef ring *frames
        if self.tx_quiet and not self.tx_more and self.tx_retry_ns == NEVER_NS:
            return 0
        self.tx_more = False
        self.tx_retry_ns = NEVER_NS
        for _ in range(self.tx_rings_count):
            frames = self.tx_rings[position]
            # Of many rings most are empty.
            if load_relaxed_u32(&frames.head) != frames.tail:
                self.tx_ring = position
                done += self.send_from(frames, now_ns)
            position += 1
            if position == self.tx_rings_count:
                position = 0
        if done != 0:
            # Another ring is first next time. Steps without frames change nothing.
            self.tx_first += 1
            if self.tx_first == self.tx_rings_count:
                self.tx_first = 0
        return done

    cdef int send_from(self, ring *frames, int64_t now_ns) noexcept nogil:
        cdef uint32_t available = ring_available(frames, 1)
        cdef uint32_t count = 0
        if available == 0:
            return 0
        while count < available and count < TX_FRAMES_PER_RING:
            prefetch_read(ring_slot(frames, frames.tail + count + 1))
            if not self.forward(ring_slot(frames, frames.tail + count), now_ns):
                break
            count += 1
        if count == TX_FRAMES_PER_RING and count < available:
            self.tx_more = True
        if count != 0:
            ring_consume(frames, count)
        return count

    cdef bint forward(self, const void *slot, int64_t now_ns) noexcept nogil:
        """Put one frame on the link, or drop and count a bad one; false: no room, later."""
        cdef const uint8_t *frame = <const uint8_t *>slot + sizeof(frame_slot)
        cdef uint32_t length = (<const frame_slot *>slot).length
        cdef uint32_t destination
        cdef uint8_t *place
        cdef uint64_t lost = 0
        if length < WIRE_HEAD_BYTES or length > self.header.geometry.mtu_bytes:
            self.drop_unsent(now_ns, frame, length, COUNTER_tx_bad_frame)
            return True
        destination = node_of_address((<const wire_head *>frame).destination)
        if not self.egress.has_destination(destination):
            self.drop_unsent(now_ns, frame, length, COUNTER_tx_no_route)
            return True
        place = self.egress.prepare(destination)
        if place == NULL:
            self.tx_retry_ns = min(self.tx_retry_ns, self.egress.retry_ns(now_ns, destination))
            return False
        memcpy(place, frame, length)
        if length < WIRE_FRAME_MIN_BYTES:   # padded by the NIC, as Ethernet wants it
            memset(place + length, 0, WIRE_FRAME_MIN_BYTES - length)
            length = WIRE_FRAME_MIN_BYTES
        if self.trace != NULL:
            # A frame handed over since the step began is not taken before that.
            trace_packet(self.trace, max(now_ns, (<const frame_slot *>slot).time_ns),
                         TRACE_tx_frame, frame, length)
            lost = self.counters[COUNTER_link_lost]
        self.egress.commit(now_ns, destination, length)
        if self.trace != NULL and self.counters[COUNTER_link_lost] != lost:
            self.trace_drop(now_ns, COUNTER_link_lost)
        self.counters[COUNTER_tx_packets] += 1
        self.counters[COUNTER_tx_bytes] += length
        return True

    cdef void drop_unsent(self, int64_t time_ns, const uint8_t *frame, uint32_t length,
                          uint32_t counter) noexcept nogil:
        """Count a frame that no link takes as dropped."""
        cdef capture_ring *capture = self.egress.capture
        self.counters[counter] += 1
        self.trace_drop(time_ns, counter)
        if capture != NULL:
            # Its length is not to be believed; a slot has room for the longest frame.
            length = min(length, self.header.geometry.mtu_bytes)
            capture_drop(capture, capture_write(capture, time_ns, 0, frame, length), AGENT_NIC,
                         counter)

    # -- up ------------------------------------------------------------------

    cdef int64_t reached(self, int64_t due_ns) noexcept nogil:
        """The time of an event due at `due_ns`. A frame that its sender published late comes
        after what has been handled already."""
        if due_ns > self.event_ns:
            self.event_ns = due_ns
        return self.event_ns

    cdef void trace_drop(self, int64_t time_ns, uint32_t counter) noexcept nogil:
        trace_record(self.trace, time_ns, TRACE_drop, counter, AGENT_NIC)

    cdef void drop_arrival(self, int64_t time_ns, incoming_frame *taken) noexcept nogil:
        """Count a bad frame as dropped."""
        cdef uint32_t counter = COUNTER_rx_bad_frame
        if WIRE_HEAD_BYTES < taken.length <= self.header.geometry.mtu_bytes:
            counter = COUNTER_rx_bad_fcs
        self.counters[counter] += 1
        self.trace_drop(time_ns, counter)
        capture_drop(self.ingress.capture, taken.captured, AGENT_NIC, counter)
        taken.frame = NULL

    cdef void end_step(self, int64_t now_ns, int64_t work_ns) noexcept nogil:
        """Publish what was sent, and say when there is something to do again if nothing is
        published to this NIC before: `work_ns` in the subclass.
        """
        cdef int64_t due_ns = min(self.egress.flush(now_ns), work_ns)
        due_ns = min(due_ns, min(self.ingress.arrival_ns, self.ingress.look_ns))
        due_ns = min(due_ns, self.tx_retry_ns)
        self.next_due_ns = now_ns if self.tx_more else due_ns
        if self.egress.failure is not None or self.ingress.failure is not None:
            self.keep_failure()

    cdef void keep_failure(self) noexcept nogil:
        with gil:
            if self.failure is None:
                self.failure = self.egress.failure or self.ingress.failure


# -- One rx queue of an Ethernet NIC: what decides and raises its interrupts.
#
# Each queue has a coalescing policy and an interrupt line of its own, so that what happens to
# one changes nothing for the others.

cdef class RxQueue:
    """Queue `number` of `node`; `raise_if_empty` as of `InterruptLine`."""

    def __init__(self, Node node not None, uint32_t number, CoalescingPolicy policy not None,
                 bint raise_if_empty):
        self.number = number
        self.policy = policy
        self.line = InterruptLine(node, number, policy, node.header.nic_agent, raise_if_empty)
        self.frames = node_rx_ring(node.header, number)

    cdef void end_step(self, uint64_t *counters) noexcept nogil:
        """Publish what came to host memory and count, for the NIC, what the policy put off."""
        cdef uint64_t longest_ns = self.policy.longest_deferral_ns
        ring_publish(self.frames)
        counters[COUNTER_irq_deferred] += self.policy.deferrals - self.deferrals
        self.deferrals = self.policy.deferrals
        counters[COUNTER_irq_deferred_packets] += (
            self.policy.deferred_packets - self.deferred_packets
        )
        self.deferred_packets = self.policy.deferred_packets
        if longest_ns > counters[COUNTER_irq_deferred_longest_ns]:
            counters[COUNTER_irq_deferred_longest_ns] = longest_ns


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
        self.dma.packet_ns = parameters.firmware_ns
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
        cdef int done = 0
        if self.wishing != 0 or self.sends_line is not None:
            done = self.settle(now_ns)
        self.counters[COUNTER_steps] += 1
        done += self.send(now_ns)
        done += self.receive(now_ns)
        if done != 0 or self.touched != 0:
            self.end_queues()
            self.ingress.finish_all()   # they are copied
            self.ingress.hand_back()
        self.end_step(now_ns, min(self.sends.due_ns, min(self.dma.due_ns, self.deadline_ns)))
        self.keeps_waiting = (
            (self.sharing_cpu != 0 or self.sends_line is not None) and self.handler_waits())
        return done

    cdef bint passes(self, int64_t now_ns, bint rung) noexcept nogil:
        cdef uint32_t number
        # Whether a handler shares the NIC's CPU matters to no simulated one.
        if (self.wishing != 0 or self.sends_line is not None
                or self.tx_more or self.tx_retry_ns != NEVER_NS):
            return False
        if not self.tx_quiet:
            for number in range(self.tx_rings_count):
                if load_relaxed_u32(&self.tx_rings[number].head) != self.tx_rings[number].tail:
                    return False
        if rung:
            self.ingress.look(now_ns)
            if self.ingress.arrival_ns <= now_ns:
                return False
            self.next_due_ns = min(self.next_due_ns, self.ingress.arrival_ns)
        self.counters[COUNTER_steps] += 1
        return True

    # -- down --------------------------------------------------------------------

    cdef bint forward(self, const void *slot, int64_t now_ns) noexcept nogil:
        if not Port.forward(self, slot, now_ns):
            return False
        if self.sends_line is not None:
            sends_add(&self.sends, max(now_ns, self.egress.sent_ns), self.tx_ring)
        return True

    cdef void end_send(self, RxQueue queue) noexcept nogil:
        """Frames have left: ask the policy of `queue`, the first, whether to say so."""
        cdef int64_t time_ns = self.reached(self.sends.due_ns)
        cdef uint32_t count = sends_complete(&self.sends)
        cdef uint32_t tx_ring, run, left = count
        cdef Cause cause
        self.counters[COUNTER_tx_completed] += count
        while left != 0:
            run = sends_run(&self.sends, left, &tx_ring)
            left -= run
            if tx_ring >= self.header.cores_count:
                node_endpoint(self.header, tx_ring - self.header.cores_count).sends_left += run
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
        if left == 0 and not self.sends_line.wished:
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
        trace_record(self.trace, self.event_ns, TRACE_irq_timer, queue.number,
                     0 if due_ns == NEVER_NS else max(0, due_ns - self.event_ns))
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
