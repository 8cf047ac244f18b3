"""The firmware of an Ethernet NIC: one agent per emulated node."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport Egress, Ingress, incoming_frame, take_frame
from shrimpmx.native.ring cimport ring
from shrimpmx.nic.dma cimport dma_engine, pending_sends
from shrimpmx.nic.interrupt_line cimport InterruptLine
from shrimpmx.nic.steering cimport FlowTable, Steering
from shrimpmx.nic.strategies cimport Cause, CoalescingPolicy
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport NODE_VECTORS_MAX, node_header
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport WIRE_HEAD_BYTES

# -- What every NIC does with its tx rings and its link.

cdef enum:
    TX_FRAMES_PER_RING = 32      # taken from one tx ring before the next has its turn (ours)
    EVENTS_PER_STEP = 256        # so that a step stays short and other agents run (ours)


# The node with this hardware address; beyond all nodes, if it is not one of ours.
cdef uint32_t node_of_address(const uint8_t *address) noexcept nogil


cdef class Port(Agent):
    cdef readonly Node node
    cdef readonly Egress egress
    cdef readonly Ingress ingress
    cdef node_header *header
    cdef int64_t event_ns            # time of the last event: events never go back
    cdef ring **tx_rings
    cdef uint32_t tx_rings_count
    cdef uint32_t tx_first           # whose turn it is
    cdef uint32_t tx_ring            # that it sends from
    cdef bint tx_more                # frames are left that fit
    cdef int64_t tx_retry_ns         # when to try frames that do not; NEVER_NS: there are none
    cdef bint tx_quiet               # nothing was put into its tx rings since: a simulation knows

    cdef int send(self, int64_t now_ns) noexcept nogil
    cdef int send_from(self, ring *frames, int64_t now_ns) noexcept nogil
    cdef bint forward(self, const void *slot, int64_t now_ns) noexcept nogil
    cdef int64_t reached(self, int64_t due_ns) noexcept nogil
    cdef void trace_drop(self, int64_t time_ns, uint32_t counter) noexcept nogil
    cdef void drop_arrival(self, int64_t time_ns, incoming_frame *taken) noexcept nogil
    cdef void drop_unsent(self, int64_t time_ns, const uint8_t *frame, uint32_t length,
                          uint32_t counter) noexcept nogil
    cdef void end_step(self, int64_t now_ns, int64_t work_ns) noexcept nogil
    cdef void keep_failure(self) noexcept nogil


cdef inline void take_arrival(Port port, int64_t time_ns, incoming_frame *taken) noexcept nogil:
    """Take the earliest frame off its link; its `frame` is NULL if it is a bad one, counted as
    dropped. The caller finishes it in either case.
    """
    take_frame(port.ingress, time_ns, taken)
    if (taken.length <= WIRE_HEAD_BYTES or taken.length > port.header.geometry.mtu_bytes
            or taken.bad_fcs):
        port.drop_arrival(time_ns, taken)


# -- One rx queue of an Ethernet NIC: what decides and raises its interrupts.

cdef class RxQueue:
    cdef readonly uint32_t number    # also its vector's
    cdef readonly CoalescingPolicy policy
    cdef readonly InterruptLine line
    cdef ring *frames
    cdef uint64_t deferrals          # of the policy's, counted so far
    cdef uint64_t deferred_packets

    cdef void end_step(self, uint64_t *counters) noexcept nogil


cdef class Firmware(Port):
    cdef readonly tuple queues       # of RxQueue
    cdef readonly Steering steering
    cdef void *queue_at[NODE_VECTORS_MAX]   # the same queues, for code without the GIL
    cdef uint32_t queues_count
    cdef FlowTable flows
    cdef bint follows                # aRFS: the flow table changes
    cdef dma_engine dma
    cdef pending_sends sends         # none if completed sends do not interrupt
    cdef InterruptLine sends_line    # theirs; None
    # Bit q: of queue q.
    cdef uint32_t touched            # this step
    cdef uint32_t wishing            # its line remembers a wish
    cdef uint32_t sharing_cpu        # its last interrupt went to handlers on the NIC's CPU
    cdef int64_t deadlines_ns[NODE_VECTORS_MAX]   # the policies'
    cdef int64_t deadline_ns         # the first of them
    cdef uint32_t deadline_queue     # whose that is

    # A step that is not due, which at most learns when frames arrive, if its bell was `rung`;
    # false: it is to be made, since it may find something. Of a simulation, which knows of
    # `tx_quiet`.
    cdef bint passes(self, int64_t now_ns, bint rung) noexcept nogil
    cdef int settle(self, int64_t now_ns) noexcept nogil
    cdef int receive(self, int64_t now_ns) noexcept nogil
    cdef void arrive(self) noexcept nogil
    cdef uint32_t steer(self, int endpoint, const incoming_frame *arrived) noexcept nogil
    cdef void complete(self, RxQueue queue) noexcept nogil
    cdef void end_send(self, RxQueue queue) noexcept nogil
    cdef void expire(self, RxQueue queue) noexcept nogil
    cdef void request(self, RxQueue queue, int64_t time_ns, Cause cause) noexcept nogil
    cdef void note_line(self, RxQueue queue) noexcept nogil
    cdef void note_policy(self, RxQueue queue) noexcept nogil
    cdef void note_deadline(self, RxQueue queue) noexcept nogil
    cdef void end_queues(self) noexcept nogil
    cdef bint handler_waits(self) noexcept nogil
