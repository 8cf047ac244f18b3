"""Links that are rings in shared memory: each node's segment has one for each sending node.

The sender writes a frame straight into the ring in the segment of the destination, with its time
of arrival by the clock that all processes of the run share; the far NIC takes it when that time
has come. Only the code here moves the cursors of these rings.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.link.ends cimport LINK_RETRY_NS, Ingress, incoming_frame
from shrimpmx.link.line cimport EmulatedLine
from shrimpmx.native.atomics cimport load_acquire_u32, load_relaxed_u32, prefetch_write
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport wait_slot_wake
from shrimpmx.native.ring cimport (
    ring, ring_available, ring_consume, ring_depth, ring_fill, ring_free, ring_next, ring_publish,
    ring_slot,
)
from shrimpmx.shared.layout cimport (
    COUNTER_rx_bad_fcs, COUNTER_rx_bad_frame, COUNTER_rx_drop_ring_full, frame_slot, node_handled,
    node_link_ring, node_rx_ring,
)
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError


def ring_links(nodes, uint32_t index, parameters, faults=None):
    """The links of node `index` to and from all `nodes`, which this process has mapped.

    Args:
        parameters: `NicParameters`: rate and delay of its line.
        faults: `LinkFaults` of the line, or None.

    Returns a RingEgress and a RingIngress.
    """
    if index >= len(nodes):
        raise InputError(f"there is no node {index}; nodes go from 0 to {len(nodes) - 1}")
    egress = RingEgress(
        nodes[index], parameters.link_bits_per_second, parameters.link_delay_ns, faults)
    for node in nodes:
        egress.add_node(node)
    return egress, RingIngress(nodes[index])


@cython.final
cdef class RingEgress(EmulatedLine):
    """The sending end of a node; see EmulatedLine. `add_node` adds a destination."""

    def __cinit__(self, Node node not None, *args, **kwargs):
        self.nodes = []
        self.room = node.header.nodes_count
        self.destinations = <ring_destination *>calloc(self.room, sizeof(ring_destination))
        self.unpublished = <uint32_t *>calloc(self.room, sizeof(uint32_t))
        self.rung = <uint32_t *>calloc(self.room, sizeof(uint32_t))
        if self.destinations == NULL or self.unpublished == NULL or self.rung == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.destinations)
        free(self.unpublished)
        free(self.rung)

    def add_node(self, Node node not None):
        """Make `node` a destination: its link ring for frames from this end, its NIC's slot."""
        cdef uint32_t index = node.header.index
        cdef ring_destination *link
        if self.source >= node.header.links_count:
            raise InputError(
                f"node {index} has no link ring for node {self.source}; it was made "
                f"for {node.header.links_count} nodes"
            )
        if node.header.geometry.mtu_bytes != self.mtu:
            raise InputError(
                f"node {index} has mtu {node.header.geometry.mtu_bytes}, the link {self.mtu}"
            )
        if index >= self.room:
            raise InputError(f"node {index} is too many; the link was made for {self.room} nodes")
        self.nodes.append(node)
        link = &self.destinations[index]
        link.frames = node_link_ring(node.header, self.source)
        link.runner = node.header.nic_runner
        link.doorbell = node.control.slot(link.runner)
        link.node = node.header
        link.dropped = <const uint64_t *>node.control.agent(node.header.nic_agent).counters
        self.destinations_count = max(self.destinations_count, index + 1)

    cdef bint has_destination(self, uint32_t node) noexcept nogil:
        return node < self.destinations_count and self.destinations[node].frames != NULL

    cdef uint8_t *prepare(self, uint32_t destination) noexcept nogil:
        # The base's, as direct calls.
        if not self.has_room(destination, self.frames_per_commit):
            self.full = self.destinations[destination].runner
            return NULL
        return self.place(destination)

    cdef bint has_room(self, uint32_t destination, uint32_t wanted) noexcept nogil:
        return ring_free(self.destinations[destination].frames, wanted) >= wanted

    cdef uint8_t *place(self, uint32_t destination) noexcept nogil:
        return (<frame_slot *>ring_next(self.destinations[destination].frames)).frame

    cdef void fill(self, uint32_t destination, uint32_t length, int64_t arrival_ns,
                   bint bad_fcs) noexcept nogil:
        cdef ring_destination *link = &self.destinations[destination]
        cdef frame_slot *slot = <frame_slot *>ring_next(link.frames)
        slot.length = length
        slot.bad_fcs = bad_fcs
        slot.time_ns = arrival_ns
        ring_fill(link.frames)
        # The slots after the next one: they were last read by the far NIC.
        prefetch_write(ring_slot(link.frames, link.frames.reserved + 3))
        if not link.unpublished:
            link.unpublished = True
            self.unpublished[self.unpublished_count] = destination
            self.unpublished_count += 1

    cdef int64_t publish(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t i
        cdef ring_destination *link
        for i in range(self.unpublished_count):
            link = &self.destinations[self.unpublished[i]]
            link.unpublished = False
            ring_publish(link.frames)
            wait_slot_wake(link.doorbell)
            self.rung[i] = link.runner
        self.rung_count = self.unpublished_count
        self.unpublished_count = 0
        return NEVER_NS

    cdef int64_t retry_ns(self, int64_t now_ns, uint32_t destination) noexcept nogil:
        """Not before the oldest frame of the full ring arrives."""
        cdef ring *frames = self.destinations[destination].frames
        cdef uint32_t oldest = load_acquire_u32(&frames.tail)
        # The far NIC may take it meanwhile; then the next one's time is read, which is later.
        return max(now_ns + LINK_RETRY_NS, (<frame_slot *>ring_slot(frames, oldest)).time_ns)

    cdef uint32_t in_flight(self, uint32_t destination) noexcept nogil:
        return ring_depth(self.destinations[destination].frames)

    cdef uint32_t frames_until_pause(self, uint32_t destination) noexcept nogil:
        """Half an rx ring, as if all that wait lay in one; where the far NIC steers them is not
        known here. This takes cache lines from the receiver.
        """
        cdef ring_destination *link = &self.destinations[destination]
        cdef uint32_t half = node_rx_ring(link.node, 0).entries // 2
        # Every frame that was put on the link is on its way, or dropped by the NIC, or handled.
        cdef uint32_t queue
        cdef uint32_t ahead = (
            link.frames.reserved
            - <uint32_t>(link.dropped[COUNTER_rx_bad_fcs] + link.dropped[COUNTER_rx_bad_frame]
                         + link.dropped[COUNTER_rx_drop_ring_full])
        )
        for queue in range(link.node.vectors_count):
            ahead -= load_relaxed_u32(node_handled(link.node, queue))
        return half - ahead if ahead < half else 0


@cython.final
cdef class RingIngress(Ingress):
    """The receiving end of `node`: the link rings in its segment."""

    def __init__(self, Node node not None):
        cdef uint32_t i
        free(self.links)
        self.node = node
        self.links_count = node.header.links_count
        self.links = <incoming_link *>calloc(self.links_count, sizeof(incoming_link))
        if self.links == NULL:
            raise MemoryError()
        for i in range(self.links_count):
            self.links[i].frames = node_link_ring(node.header, i)
            self.links[i].arrival_ns = NEVER_NS

    def __dealloc__(self):
        free(self.links)

    cdef void look(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t i, index
        cdef incoming_link *link
        for i in range(self.links_count):
            link = &self.links[i]
            link.available = ring_available(link.frames, link.taken + 1)
            if link.available > link.taken:
                index = link.frames.tail + link.taken
                link.arrival_ns = (<frame_slot *>ring_slot(link.frames, index)).time_ns
        self.find_earliest()

    cdef void find_earliest(self) noexcept nogil:
        cdef uint32_t i
        self.arrival_ns = NEVER_NS
        for i in range(self.links_count):
            if self.links[i].arrival_ns < self.arrival_ns:
                self.arrival_ns = self.links[i].arrival_ns
                self.earliest = &self.links[i]

    cdef void take(self, incoming_frame *taken) noexcept nogil:
        cdef incoming_link *link = self.earliest
        cdef uint32_t index = link.frames.tail + link.taken
        cdef frame_slot *slot = <frame_slot *>ring_slot(link.frames, index)
        cdef frame_slot *ahead = <frame_slot *>ring_slot(link.frames, index + 1)
        link.taken += 1
        link.arrival_ns = ahead.time_ns if link.taken < link.available else NEVER_NS
        self.find_earliest()
        taken.frame = slot.frame
        taken.length = slot.length
        taken.source = <uint32_t>(link - self.links)
        taken.bad_fcs = slot.bad_fcs

    cdef void finish(self, uint32_t source) noexcept nogil:
        self.links[source].finished += 1

    cdef void finish_all(self) noexcept nogil:
        cdef uint32_t i
        for i in range(self.links_count):
            self.links[i].finished = self.links[i].taken

    cdef void hand_back(self) noexcept nogil:
        cdef uint32_t i
        cdef incoming_link *link
        for i in range(self.links_count):
            link = &self.links[i]
            if link.finished != 0:
                ring_consume(link.frames, link.finished)
                link.taken -= link.finished
                link.finished = 0
