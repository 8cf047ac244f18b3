"""What every NIC does: frames from the tx rings go out on the link, others come in from it.

Down: the tx rings of the node's cores and endpoints in turn. Up: incoming frames in order of their
times of arrival; what becomes of them is the subclass's business.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from shrimpmx.link.ends cimport Egress, Ingress, incoming_frame
from shrimpmx.native.atomics cimport load_relaxed_u32, prefetch_read
from shrimpmx.native.capture cimport Capture, capture_drop, capture_ring, capture_write
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_available, ring_consume, ring_slot
from shrimpmx.native.trace cimport TRACE_drop, TRACE_tx_frame, trace_record
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport (
    AGENT_NIC, COUNTER_link_lost, COUNTER_rx_bad_fcs, COUNTER_rx_bad_frame, COUNTER_tx_bad_frame,
    COUNTER_tx_bytes, COUNTER_tx_no_route, COUNTER_tx_packets, frame_slot, node_address,
    node_core_tx_ring, node_endpoint_tx_ring,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.wire cimport WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, wire_head

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
