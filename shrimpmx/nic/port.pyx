"""What every NIC does: frames from the tx rings go out on the link, others come in from it.

Down: the tx rings of the node's cores and endpoints in turn. Up: the frames of the incoming link
rings in order of their times of arrival; what becomes of them is the subclass's business. Slots
of link rings are handed back once per step.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from shrimpmx.native.atomics cimport load_relaxed_u32, prefetch_read
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_available, ring_consume, ring_slot
from shrimpmx.native.trace cimport TRACE_drop, TRACE_tx_frame, trace_record
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport (
    AGENT_NIC,
    COUNTER_rx_bad_fcs,
    COUNTER_rx_bad_frame,
    COUNTER_tx_bad_frame,
    COUNTER_tx_bytes,
    COUNTER_tx_no_route,
    COUNTER_tx_packets,
    frame_slot,
    node_address,
    node_core_tx_ring,
    node_endpoint_tx_ring,
    node_link_ring,
)
from shrimpmx.wire.link cimport LinkEgress
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.wire cimport WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, wire_head

from shrimpmx.errors import InputError

cdef uint32_t NO_NODE = 0xFFFFFFFF


cdef uint32_t node_of_address(const uint8_t *address) noexcept nogil:
    """The node with this hardware address, NO_NODE if it is not one of ours."""
    cdef uint8_t known[6]
    cdef uint32_t index = <uint32_t>address[4] << 8 | address[5]
    node_address(index, known)
    return index if memcmp(known, address, 6) == 0 else NO_NODE


cdef class Port(Agent):
    """The end of a link at node `index`: base of the NICs. Subclasses override `step`.

    Args:
        nodes: every node of the cluster, by index; each is a destination, also this one.
        index: the node that this NIC belongs to.
        parameters: `NicParameters`.
        faults: `LinkFaults` of the outgoing link, or None.
    """

    def __init__(self, nodes, uint32_t index, parameters, faults=None):
        if index >= len(nodes):
            raise InputError(f"there is no node {index}; nodes go from 0 to {len(nodes) - 1}")
        self.node = nodes[index]
        self.header = self.node.header
        self.record = self.node.control.agent(self.header.nic_agent)
        self.counters = <uint64_t *>self.record.counters
        self.name = self.record.name.decode()
        self.egress = LinkEgress(
            parameters.link_bits_per_second, parameters.link_delay_ns, faults, index,
            self.header.geometry.mtu_bytes,
        )
        self.egress.use_counters(self.counters)
        for node in nodes:
            self.egress.add_node(node)
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

    def __dealloc__(self):
        free(self.tx_rings)
        free(self.incoming)

    # -- down ----------------------------------------------------------------

    cdef int send(self, int64_t now_ns) noexcept nogil:
        """Take frames from each tx ring in turn; returns how many."""
        cdef int done = 0
        cdef uint32_t position = self.tx_first
        cdef ring *frames
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

    cdef void look_at_links(self) noexcept nogil:
        """See what has been published on the incoming links."""
        cdef uint32_t i, index
        cdef incoming_link *link
        for i in range(self.incoming_count):
            link = &self.incoming[i]
            link.available = ring_available(link.frames, link.taken + 1)
            if link.available > link.taken:
                index = link.frames.tail + link.taken
                link.arrival_ns = (<frame_slot *>ring_slot(link.frames, index)).time_ns
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

    cdef frame_slot *take_arrival(self, int64_t time_ns) noexcept nogil:
        """Take the earliest frame off its link; NULL if it is a bad one, counted as dropped.

        The slot stays the caller's until it counts it in the link's `finished`.
        """
        cdef incoming_link *link = self.next_incoming
        cdef uint32_t index = link.frames.tail + link.taken
        cdef frame_slot *slot = <frame_slot *>ring_slot(link.frames, index)
        cdef frame_slot *ahead = <frame_slot *>ring_slot(link.frames, index + 1)
        link.taken += 1
        link.arrival_ns = ahead.time_ns if link.taken < link.available else NEVER_NS
        self.find_earliest()
        if slot.length <= WIRE_HEAD_BYTES or slot.length > self.header.geometry.mtu_bytes:
            self.counters[COUNTER_rx_bad_frame] += 1
            self.trace_drop(time_ns, COUNTER_rx_bad_frame)
            return NULL
        if slot.bad_fcs:
            self.counters[COUNTER_rx_bad_fcs] += 1
            self.trace_drop(time_ns, COUNTER_rx_bad_fcs)
            return NULL
        return slot

    cdef void hand_back(self) noexcept nogil:
        """Return the link slots that are finished with, once for the whole step."""
        cdef uint32_t i
        cdef incoming_link *link
        for i in range(self.incoming_count):
            link = &self.incoming[i]
            if link.finished != 0:
                ring_consume(link.frames, link.finished)
                link.taken -= link.finished
                link.finished = 0

    cdef int64_t next_due(self, int64_t now_ns, int64_t held_ns,
                          int64_t work_ns) noexcept nogil:
        """When there is something to do again, if nobody publishes anything before: `held_ns` on
        the link, `work_ns` in the subclass."""
        cdef int64_t due_ns = min(self.arrival_ns, work_ns)
        due_ns = min(due_ns, held_ns)
        due_ns = min(due_ns, self.tx_retry_ns)
        return now_ns if self.tx_more else due_ns
