"""The firmware of an Ethernet NIC: one agent per emulated node.

Down: frames from the tx rings of the node's cores and endpoints go out on the link, the
rings in turn. Up: frames from the link rings go by DMA into the rx ring, and the coalescing
policy says when the host is to be interrupted.

The way up is a discrete-event loop. Arrivals, completed DMAs and the coalescing deadline are
handled in order of the times at which they are due, and told to the policy with those
times: what a policy decides does not depend on when the process happened to run, and is the
same under a virtual clock. At one time an arrival comes before a completion, which comes
before the deadline. Frames and slots are published once per step, or before an interrupt.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from shrimpmx.native.atomics cimport prefetch_read
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_available, ring_consume, ring_publish, ring_slot
from shrimpmx.native.trace cimport (
    TRACE_dma_complete,
    TRACE_drop,
    TRACE_irq_deferred,
    TRACE_rx_frame,
    TRACE_tx_frame,
    Trace,
    trace_record,
)
from shrimpmx.nic.coalescing cimport CAUSE_NONE, Cause
from shrimpmx.nic.dma cimport dma_complete, dma_has_room, dma_submit
from shrimpmx.nic.interrupt_line cimport InterruptLine
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport (
    AGENT_NIC,
    COUNTER_irq_deferred,
    COUNTER_irq_deferred_longest_ns,
    COUNTER_irq_deferred_packets,
    COUNTER_rx_bad_fcs,
    COUNTER_rx_bad_frame,
    COUNTER_rx_bytes,
    COUNTER_rx_drop_ring_full,
    COUNTER_rx_marked,
    COUNTER_rx_packets,
    COUNTER_steps,
    COUNTER_tx_bad_frame,
    COUNTER_tx_bytes,
    COUNTER_tx_no_route,
    COUNTER_tx_packets,
    frame_slot,
    node_address,
    node_core_tx_ring,
    node_endpoint_tx_ring,
    node_link_ring,
    node_rx_ring,
)
from shrimpmx.wire.link cimport LinkEgress
from shrimpmx.wire.mark cimport frame_marked
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.rate cimport rate_line_initialise
from shrimpmx.wire.wire cimport WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, wire_head

from shrimpmx.errors import InputError
from shrimpmx.nic.names import make_policy

cdef uint32_t NO_NODE = 0xFFFFFFFF


cdef uint32_t node_of_address(const uint8_t *address) noexcept nogil:
    """The node with this hardware address, NO_NODE if it is not one of ours."""
    cdef uint8_t known[6]
    cdef uint32_t index = <uint32_t>address[4] << 8 | address[5]
    node_address(index, known)
    return index if memcmp(known, address, 6) == 0 else NO_NODE


cdef class Firmware(Agent):
    """The NIC of node `index`.

    Args:
        nodes: every node of the cluster, by index; each is a destination, also this one.
        index: the node that this NIC belongs to.
        parameters: `NicParameters`.
        policy: a `CoalescingPolicy`, a user's `Policy`, or None for the one that the
            parameters name.
        faults: `LinkFaults` of the outgoing link, or None.
        dilation: how much longer than real hardware's times are that the parameters do not
            give: those of the adaptive policies' rates and profiles.
    """

    def __init__(self, nodes, uint32_t index, parameters, policy=None, faults=None,
                 double dilation=1.0):
        if index >= len(nodes):
            raise InputError(f"there is no node {index}; nodes go from 0 to {len(nodes) - 1}")
        self.node = nodes[index]
        self.header = self.node.header
        self.record = self.node.control.agent(self.header.nic_agent)
        self.counters = <uint64_t *>self.record.counters
        self.name = self.record.name.decode()
        self.policy = make_policy(parameters if policy is None else policy, dilation)
        self.line = InterruptLine(
            self.node, 0, self.policy, self.header.nic_agent, not parameters.mark_resets_timer
        )
        self.egress = LinkEgress(
            parameters.link_bits_per_second, parameters.link_delay_ns, faults, index,
            self.header.geometry.mtu_bytes,
        )
        self.egress.use_counters(self.counters)
        for node in nodes:
            self.egress.add_node(node)
        self.dma.frames = node_rx_ring(self.header, 0)
        self.dma.latency_ns = parameters.dma_latency_ns
        self.dma.due_ns = NEVER_NS
        rate_line_initialise(&self.dma.line, parameters.dma_bytes_per_second, 1)
        self.arrival_ns = NEVER_NS
        self.find_rings()

    def find_rings(self):
        """Collect the tx rings and the incoming link rings."""
        cdef uint32_t i
        free(self.tx_rings)
        free(self.incoming)
        self.tx_rings_count = self.header.cores_count + self.header.endpoints_count
        self.incoming_count = self.header.nodes_count
        self.tx_rings = <ring **>calloc(self.tx_rings_count, sizeof(ring *))
        self.incoming = <incoming_link *>calloc(self.incoming_count, sizeof(incoming_link))
        if self.tx_rings == NULL or self.incoming == NULL:
            raise MemoryError()
        for i in range(self.header.cores_count):
            self.tx_rings[i] = node_core_tx_ring(self.header, i)
        for i in range(self.header.endpoints_count):
            self.tx_rings[self.header.cores_count + i] = node_endpoint_tx_ring(self.header, i)
        for i in range(self.incoming_count):
            self.incoming[i].frames = node_link_ring(self.header, i)
            self.incoming[i].arrival_ns = NEVER_NS

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what the NIC does, in the ring of agent `number`."""
        Agent.use_trace(self, trace, number)
        self.line.trace = self.trace

    def __dealloc__(self):
        free(self.tx_rings)
        free(self.incoming)

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef int done = self.line.settle(now_ns)
        cdef int64_t held_ns
        self.counters[COUNTER_steps] += 1
        done += self.send(now_ns)
        done += self.receive(now_ns)
        self.hand_back()
        held_ns = self.egress.flush(now_ns)
        self.counters[COUNTER_irq_deferred] = self.policy.deferrals
        self.counters[COUNTER_irq_deferred_packets] = self.policy.deferred_packets
        self.counters[COUNTER_irq_deferred_longest_ns] = self.policy.longest_deferral_ns
        if self.policy.failed:
            with gil:
                self.failure = self.policy.failure
        self.next_due_ns = self.next_due(now_ns, held_ns)
        self.keeps_waiting = self.line.handler_waits()
        return done

    # -- down ----------------------------------------------------------------

    cdef int send(self, int64_t now_ns) noexcept nogil:
        """Take frames from each tx ring in turn; returns how many."""
        cdef int done = 0
        cdef uint32_t position = self.tx_first
        self.tx_more = False
        self.tx_retry_ns = NEVER_NS
        for _ in range(self.tx_rings_count):
            done += self.send_from(self.tx_rings[position], now_ns)
            position += 1
            if position == self.tx_rings_count:
                position = 0
        # Another ring is first next time.
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
        if length < WIRE_HEAD_BYTES or length > self.header.geometry.mtu_bytes:
            self.counters[COUNTER_tx_bad_frame] += 1
            self.trace_drop(now_ns, COUNTER_tx_bad_frame)
            return True
        destination = node_of_address((<const wire_head *>frame).destination)
        if not self.egress.has_destination(destination):
            self.counters[COUNTER_tx_no_route] += 1
            self.trace_drop(now_ns, COUNTER_tx_no_route)
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
        self.egress.commit(now_ns, destination, length)
        self.counters[COUNTER_tx_packets] += 1
        self.counters[COUNTER_tx_bytes] += length
        return True

    # -- up ------------------------------------------------------------------

    cdef int receive(self, int64_t now_ns) noexcept nogil:
        """Handle the events that are due, in order of their times; returns how many."""
        cdef int done = 0
        cdef int64_t time_ns
        cdef Cause cause
        self.look_at_links()
        while done < EVENTS_PER_STEP:
            if self.arrival_ns <= self.dma.due_ns and self.arrival_ns <= self.policy.deadline_ns:
                if self.arrival_ns > now_ns:
                    break
                self.arrive()
            elif self.dma.due_ns <= self.policy.deadline_ns:
                if self.dma.due_ns > now_ns:
                    break
                self.complete()
            else:
                if self.policy.deadline_ns > now_ns:
                    break
                time_ns = self.reached(self.policy.deadline_ns)
                cause = self.policy.on_deadline(time_ns)
                if cause != CAUSE_NONE:
                    self.line.request(time_ns, cause)
            done += 1
        return done

    cdef void look_at_links(self) noexcept nogil:
        """See what has been published on the incoming links."""
        cdef uint32_t i
        cdef incoming_link *link
        for i in range(self.incoming_count):
            link = &self.incoming[i]
            link.available = ring_available(link.frames, 1)
            if link.available != 0:
                link.arrival_ns = (<frame_slot *>ring_slot(link.frames, link.frames.tail)).time_ns
        self.find_earliest()

    cdef void find_earliest(self) noexcept nogil:
        cdef uint32_t i
        self.arrival_ns = NEVER_NS
        for i in range(self.incoming_count):
            if self.incoming[i].arrival_ns < self.arrival_ns:
                self.arrival_ns = self.incoming[i].arrival_ns
                self.next_incoming = &self.incoming[i]

    cdef int64_t reached(self, int64_t due_ns) noexcept nogil:
        """The time of an event due at `due_ns`. A frame that its sender published late comes
        after what has been handled already."""
        if due_ns > self.event_ns:
            self.event_ns = due_ns
        return self.event_ns

    cdef void trace_drop(self, int64_t time_ns, uint32_t counter) noexcept nogil:
        trace_record(self.trace, time_ns, TRACE_drop, counter, AGENT_NIC)

    cdef void arrive(self) noexcept nogil:
        """A frame is here: reserve its place in the rx ring and start its DMA, or drop it."""
        cdef incoming_link *link = self.next_incoming
        cdef uint32_t index = link.frames.tail + link.taken
        cdef frame_slot *slot = <frame_slot *>ring_slot(link.frames, index)
        cdef frame_slot *ahead = <frame_slot *>ring_slot(link.frames, index + 1)
        cdef int64_t time_ns = self.reached(link.arrival_ns)
        cdef uint32_t length = slot.length
        link.taken += 1
        link.arrival_ns = ahead.time_ns if link.taken < link.available else NEVER_NS
        self.find_earliest()
        if length <= WIRE_HEAD_BYTES or length > self.header.geometry.mtu_bytes:
            self.counters[COUNTER_rx_bad_frame] += 1
            self.trace_drop(time_ns, COUNTER_rx_bad_frame)
        elif slot.bad_fcs:
            self.counters[COUNTER_rx_bad_fcs] += 1
            self.trace_drop(time_ns, COUNTER_rx_bad_fcs)
        elif not dma_has_room(&self.dma):
            self.counters[COUNTER_rx_drop_ring_full] += 1
            self.trace_drop(time_ns, COUNTER_rx_drop_ring_full)
        else:
            trace_packet(self.trace, time_ns, TRACE_rx_frame, slot.frame, length)
            dma_submit(&self.dma, time_ns, slot.frame, length)
            self.policy.on_arrival(time_ns, frame_marked(slot.frame), length)

    cdef void complete(self) noexcept nogil:
        """A frame is in host memory: ask the policy whether to say so."""
        cdef int64_t time_ns = self.reached(self.dma.due_ns)
        cdef frame_slot *slot = dma_complete(&self.dma)
        cdef bint marked = frame_marked(slot.frame)
        cdef uint64_t deferrals = self.policy.deferrals
        cdef Cause cause
        self.counters[COUNTER_rx_packets] += 1
        self.counters[COUNTER_rx_bytes] += slot.length
        self.counters[COUNTER_rx_marked] += marked
        trace_packet(self.trace, time_ns, TRACE_dma_complete, slot.frame, slot.length)
        cause = self.policy.on_dma_complete(time_ns, marked, self.dma.pending)
        if self.trace != NULL and self.policy.deferrals != deferrals:
            trace_record(self.trace, time_ns, TRACE_irq_deferred, self.line.index,
                         self.dma.pending)
        if cause != CAUSE_NONE:
            self.line.request(time_ns, cause)

    cdef void hand_back(self) noexcept nogil:
        """Publish completed frames, return link slots, once for the whole step."""
        cdef uint32_t i
        ring_publish(self.dma.frames)
        for i in range(self.incoming_count):
            if self.incoming[i].taken != 0:
                ring_consume(self.incoming[i].frames, self.incoming[i].taken)
                self.incoming[i].taken = 0

    cdef int64_t next_due(self, int64_t now_ns, int64_t held_ns) noexcept nogil:
        """When there is something to do again, if nobody publishes anything before."""
        cdef int64_t due_ns = min(self.arrival_ns, self.dma.due_ns)
        due_ns = min(due_ns, self.policy.deadline_ns)
        due_ns = min(due_ns, held_ns)
        due_ns = min(due_ns, self.tx_retry_ns)
        return now_ns if self.tx_more else due_ns
