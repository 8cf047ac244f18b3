"""The firmware of an Ethernet NIC: one agent per emulated node.

Down: see port.pyx. Up: frames from the link rings go by DMA into the rx ring, and the coalescing
policy says when the host is to be interrupted.

The way up is a discrete-event loop. Arrivals, completed DMAs and the coalescing deadline are
handled in order of the times at which they are due, and told to the policy with those
times: what a policy decides does not depend on when the process happened to run, and is the
same under a virtual clock. At one time an arrival comes before a completion, which comes
before the deadline. Frames and slots are published once per step, or before an interrupt.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring_publish
from shrimpmx.native.trace cimport (
    TRACE_dma_complete,
    TRACE_irq_deferred,
    TRACE_rx_frame,
    Trace,
    trace_record,
)
from shrimpmx.nic.coalescing cimport CAUSE_NONE, Cause
from shrimpmx.nic.dma cimport dma_complete, dma_has_room, dma_submit
from shrimpmx.nic.interrupt_line cimport InterruptLine
from shrimpmx.nic.port cimport EVENTS_PER_STEP, Port
from shrimpmx.shared.layout cimport (
    COUNTER_irq_deferred,
    COUNTER_irq_deferred_longest_ns,
    COUNTER_irq_deferred_packets,
    COUNTER_rx_bytes,
    COUNTER_rx_drop_ring_full,
    COUNTER_rx_marked,
    COUNTER_rx_packets,
    COUNTER_steps,
    frame_slot,
    node_rx_ring,
)
from shrimpmx.wire.mark cimport frame_marked
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.rate cimport rate_line_initialise

from shrimpmx.nic.names import make_policy


cdef class Firmware(Port):
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
        Port.__init__(self, nodes, index, parameters, faults)
        self.policy = make_policy(parameters if policy is None else policy, dilation)
        self.line = InterruptLine(
            self.node, 0, self.policy, self.header.nic_agent, not parameters.mark_resets_timer
        )
        self.dma.frames = node_rx_ring(self.header, 0)
        self.dma.latency_ns = parameters.dma_latency_ns
        self.dma.due_ns = NEVER_NS
        rate_line_initialise(&self.dma.line, parameters.dma_bytes_per_second, 1)

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what the NIC does, in the ring of agent `number`."""
        Port.use_trace(self, trace, number)
        self.line.trace = self.trace

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef int done = self.line.settle(now_ns)
        cdef int64_t held_ns
        self.counters[COUNTER_steps] += 1
        done += self.send(now_ns)
        done += self.receive(now_ns)
        ring_publish(self.dma.frames)
        self.hand_back()
        held_ns = self.egress.flush(now_ns)
        self.counters[COUNTER_irq_deferred] = self.policy.deferrals
        self.counters[COUNTER_irq_deferred_packets] = self.policy.deferred_packets
        self.counters[COUNTER_irq_deferred_longest_ns] = self.policy.longest_deferral_ns
        if self.policy.failed:
            with gil:
                self.failure = self.policy.failure
        self.next_due_ns = self.next_due(now_ns, held_ns,
                                         min(self.dma.due_ns, self.policy.deadline_ns))
        self.keeps_waiting = self.line.handler_waits()
        return done

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

    cdef void arrive(self) noexcept nogil:
        """A frame is here: reserve its place in the rx ring and start its DMA, or drop it."""
        cdef int64_t time_ns = self.reached(self.arrival_ns)
        cdef frame_slot *slot
        self.next_incoming.finished += 1   # it is copied below
        slot = self.take_arrival(time_ns)
        if slot == NULL:
            return
        if not dma_has_room(&self.dma):
            self.counters[COUNTER_rx_drop_ring_full] += 1
            self.trace_drop(time_ns, COUNTER_rx_drop_ring_full)
            return
        trace_packet(self.trace, time_ns, TRACE_rx_frame, slot.frame, slot.length)
        dma_submit(&self.dma, time_ns, slot.frame, slot.length)
        self.policy.on_arrival(time_ns, frame_marked(slot.frame), slot.length)

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
