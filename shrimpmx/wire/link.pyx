"""The sending end of a link.

A NIC has one line out, which frames pass one after another at the link's rate, and behind it
an ideal switch: a frame arrives at its destination `delay_ns` after its last byte left. The
frame is written straight into the destination's incoming link ring with its time of arrival;
the far NIC takes it when that time has come. The far end may be another machine, so nothing
here knows what lies between.

Frames are built in place: `prepare` gives the next slot, `commit` sends what was built
there. `flush` makes all of them visible at once and wakes who has to know.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from shrimpmx.native.atomics cimport load_acquire_u32, prefetch_write
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport wait_slot, wait_slot_wake
from shrimpmx.native.ring cimport (
    ring, ring_fill, ring_free, ring_next, ring_publish, ring_slot
)
from shrimpmx.shared.layout cimport (
    COUNTER_link_corrupted,
    COUNTER_link_duplicated,
    COUNTER_link_lost,
    COUNTER_link_reordered,
    NODE_PEERS_MAX,
    frame_slot,
    node_link_ring,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.faults cimport (
    FAULT_CORRUPT,
    FAULT_DUPLICATE,
    FAULT_HOLD,
    FAULT_LOSE,
    OVERTAKEN,
    OVERTAKES,
    OVERTAKES_NOTHING,
    FaultSource,
    HeldFrames,
    held_frame,
    message_of,
    overtaking,
)
from shrimpmx.wire.gap cimport host_gap_draw, host_gap_initialise
from shrimpmx.wire.rate cimport rate_line_initialise, rate_line_pass

from shrimpmx.errors import InputError


cdef class LinkEgress:
    """The sending end of node `source`.

    Args:
        rate_bits_per_s: rate of the line; 0 for frames that take no time.
        delay_ns: from the last byte leaving to the frame's arrival.
        faults: `LinkFaults`, or None for a perfect link.
        source: index of the sending node.
        mtu: largest frame, bytes.
    """

    def __cinit__(self, *args, **kwargs):
        self.destinations = <link_destination *>calloc(NODE_PEERS_MAX, sizeof(link_destination))
        self.unpublished = <uint32_t *>calloc(NODE_PEERS_MAX, sizeof(uint32_t))
        if self.destinations == NULL or self.unpublished == NULL:
            raise MemoryError()
        self.counters = self.own_counters

    def __init__(self, uint64_t rate_bits_per_s, int64_t delay_ns, faults=None,
                 uint32_t source=0, uint32_t mtu=1500):
        rate_line_initialise(&self.line, rate_bits_per_s, 8)
        host_gap_initialise(&self.gap, 0, 0, source)
        self.delay_ns = delay_ns
        self.source = source
        self.mtu = mtu
        if faults is not None and faults.active:
            self.faults = FaultSource(faults, source)
            self.held = HeldFrames(mtu)

    def use_gap(self, int64_t mean_ns, double jitter, uint64_t seed):
        """Leave a gap behind each frame, what the sending host takes for the next one.

        `jitter`: the share of `mean_ns` that is exponentially distributed, 0 to 1.
        """
        host_gap_initialise(&self.gap, mean_ns, jitter, seed)

    def __dealloc__(self):
        free(self.destinations)
        free(self.unpublished)

    cdef void use_counters(self, uint64_t *counters) noexcept:
        """Count into these, an agent's, from now on."""
        self.counters = counters

    cdef int add_destination(self, uint32_t node, ring *frames, wait_slot *doorbell) except -1:
        """Frames to `node` go into `frames`; `doorbell` is its NIC's wait slot."""
        if node >= NODE_PEERS_MAX:
            raise InputError(f"node {node} is too many; a link reaches {NODE_PEERS_MAX} nodes")
        self.destinations[node].frames = frames
        self.destinations[node].doorbell = doorbell
        if node >= self.destinations_count:
            self.destinations_count = node + 1
        return 0

    def add_node(self, Node node not None):
        """Make `node` a destination: its link ring for frames from this end, its NIC's slot."""
        if self.source >= node.header.nodes_count:
            raise InputError(
                f"node {node.header.index} has no link ring for node {self.source}; it was made "
                f"for {node.header.nodes_count} nodes"
            )
        if node.header.geometry.mtu_bytes != self.mtu:
            raise InputError(
                f"node {node.header.index} has mtu {node.header.geometry.mtu_bytes}, "
                f"the link {self.mtu}"
            )
        self.geometry = node.header.geometry
        self.add_destination(
            node.header.index,
            node_link_ring(node.header, self.source),
            node.control.slot(node.header.nic_runner),
        )

    cdef bint has_destination(self, uint32_t node) noexcept nogil:
        return node < self.destinations_count and self.destinations[node].frames != NULL

    cdef uint8_t *prepare(self, uint32_t destination) noexcept nogil:
        """Where to build the next frame to a known destination; NULL if there is no room."""
        cdef ring *frames = self.destinations[destination].frames
        # With faults one frame may become two.
        cdef uint32_t wanted = 1 if self.faults is None else 2
        if ring_free(frames, wanted) < wanted:
            return NULL
        return (<frame_slot *>ring_next(frames)).frame

    cdef int64_t retry_ns(self, int64_t now_ns, uint32_t destination) noexcept nogil:
        """When a full link ring may have room again: not before its oldest frame arrives."""
        cdef ring *frames = self.destinations[destination].frames
        cdef uint32_t oldest = load_acquire_u32(&frames.tail)
        # The far NIC may take it meanwhile; then the next one's time is read, which is later.
        return max(now_ns + LINK_RETRY_NS, (<frame_slot *>ring_slot(frames, oldest)).time_ns)

    cdef void commit(self, int64_t now_ns, uint32_t destination, uint32_t length) noexcept nogil:
        """Send the frame built where `prepare` said; `length` is at most the mtu."""
        cdef link_destination *link = &self.destinations[destination]
        cdef int64_t passed_ns
        if not link.unpublished:
            link.unpublished = True
            self.unpublished[self.unpublished_count] = destination
            self.unpublished_count += 1
        if self.faults is not None:
            self.commit_with_faults(link, now_ns, destination, length)
            return
        passed_ns = self.pass_line(now_ns, length)
        self.fill(link, length, passed_ns + self.delay_ns, False)

    cdef int64_t pass_line(self, int64_t now_ns, uint32_t length) noexcept nogil:
        """Let a frame pass the line; when it is through."""
        cdef int64_t passed_ns = rate_line_pass(&self.line, now_ns, length + LINK_OVERHEAD_BYTES)
        self.line.free_ns += host_gap_draw(&self.gap)
        return passed_ns

    cdef void fill(self, link_destination *link, uint32_t length, int64_t arrival_ns,
                   bint bad_fcs) noexcept nogil:
        cdef frame_slot *slot = <frame_slot *>ring_next(link.frames)
        if arrival_ns > self.last_arrival_ns:
            self.last_arrival_ns = arrival_ns
        slot.length = length
        slot.bad_fcs = bad_fcs
        slot.time_ns = self.last_arrival_ns
        ring_fill(link.frames)
        # The slots after the next one: they were last read by the far NIC.
        prefetch_write(ring_slot(link.frames, link.frames.reserved + 3))

    cdef void commit_with_faults(self, link_destination *link, int64_t now_ns,
                                 uint32_t destination, uint32_t length) noexcept nogil:
        cdef uint8_t *frame = (<frame_slot *>ring_next(link.frames)).frame
        # Before a bit of what tells it is flipped.
        cdef overtaking place = self.faults.overtaking_of(frame, length, &self.geometry)
        cdef uint64_t message = message_of(frame) if place != OVERTAKES_NOTHING else 0
        cdef uint32_t overtaken
        cdef int drawn = self.faults.draw(frame, length)
        cdef int64_t arrival_ns = self.delay_ns
        cdef bint fill = not drawn & FAULT_LOSE
        cdef bint bad_fcs = drawn & FAULT_CORRUPT and self.faults.checked
        if drawn & FAULT_LOSE:
            self.counters[COUNTER_link_lost] += 1
        if drawn & FAULT_CORRUPT:
            self.faults.flip_bit(frame, length)
            self.counters[COUNTER_link_corrupted] += 1
        if fill and place == OVERTAKEN and self.held.hold(
            destination, now_ns + REORDER_HOLD_NS, frame, length, bad_fcs, NO_COUNT, message
        ):
            fill = False  # it passes the line behind the one that overtakes it
        else:
            arrival_ns += self.pass_line(now_ns, length)
            if drawn & FAULT_HOLD and self.held.hold(
                destination, now_ns + REORDER_HOLD_NS, frame, length, bad_fcs,
                self.faults.reorder_degree, 0,
            ):
                self.counters[COUNTER_link_reordered] += 1
                fill = False
        if fill:
            self.fill(link, length, arrival_ns, bad_fcs)
            self.held.count_overtaking(destination)
        if place == OVERTAKES:
            # Behind the last fragment, or alone if that was lost.
            overtaken = self.held.let_go(destination, message, now_ns)
            self.counters[COUNTER_link_reordered] += overtaken if fill else 0
        if drawn & FAULT_DUPLICATE:
            self.counters[COUNTER_link_duplicated] += 1
            arrival_ns = self.delay_ns + rate_line_pass(&self.line, now_ns,
                                                        length + LINK_OVERHEAD_BYTES)
            # If the frame itself is held back, its copy goes ahead of it.
            self.send_copy(link, frame, length, arrival_ns, bad_fcs)
        self.release(now_ns)

    cdef void send_copy(self, link_destination *link, const uint8_t *frame, uint32_t length,
                        int64_t arrival_ns, bint bad_fcs) noexcept nogil:
        cdef frame_slot *slot = <frame_slot *>ring_next(link.frames)
        if slot.frame != frame:
            memcpy(slot.frame, frame, length)
        self.fill(link, length, arrival_ns, bad_fcs)

    cdef void release(self, int64_t now_ns) noexcept nogil:
        """Send the held frames that enough others have overtaken, or that are due."""
        cdef uint32_t i = 0
        cdef held_frame *held
        cdef link_destination *link
        cdef int64_t passed_ns
        while i < self.held.count:
            held = &self.held.frames[i]
            link = &self.destinations[held.destination]
            if ((held.overtaken < held.wanted and held.release_ns > now_ns)
                    or ring_free(link.frames, 1) == 0):
                i += 1
                continue
            if not link.unpublished:
                link.unpublished = True
                self.unpublished[self.unpublished_count] = held.destination
                self.unpublished_count += 1
            passed_ns = now_ns if held.message == 0 else self.pass_line(now_ns, held.length)
            self.send_copy(link, held.bytes, held.length, passed_ns + self.delay_ns,
                           held.bad_fcs)
            self.held.drop(i)

    cdef int transmit(self, int64_t now_ns, uint32_t destination, const uint8_t *frame,
                      uint32_t length) noexcept nogil:
        """Send a frame that lies elsewhere. 1: sent, or lost by a fault; 0: no room, try later."""
        cdef uint8_t *place = self.prepare(destination)
        if place == NULL:
            return 0
        memcpy(place, frame, length)
        self.commit(now_ns, destination, length)
        return 1

    cdef int64_t flush(self, int64_t now_ns) noexcept nogil:
        """Make sent frames visible and wake their NICs; returns when to flush again at the
        latest, NEVER_NS if nothing is held back."""
        cdef uint32_t i
        cdef int64_t due_ns
        cdef link_destination *link
        if self.faults is not None:
            self.release(now_ns)
        for i in range(self.unpublished_count):
            link = &self.destinations[self.unpublished[i]]
            link.unpublished = False
            ring_publish(link.frames)
            wait_slot_wake(link.doorbell)
        self.unpublished_count = 0
        if self.faults is None:
            return NEVER_NS
        due_ns = self.held.earliest_ns()
        # Due already, so the link ring was full.
        return due_ns if due_ns > now_ns else now_ns + LINK_RETRY_NS

    def send(self, int64_t now_ns, uint32_t destination, bytes frame not None):
        """Send one frame at `now_ns`; False if there is no room. For tests and tools."""
        if not self.has_destination(destination):
            raise InputError(f"no link from node {self.source} to node {destination}")
        if not 16 < len(frame) <= self.mtu:
            raise InputError(f"a frame of {len(frame)} bytes cannot pass a link of mtu {self.mtu}")
        return bool(self.transmit(now_ns, destination, <const uint8_t *>frame,
                                  <uint32_t>len(frame)))

    def flush_at(self, int64_t now_ns):
        """Make sent frames visible; returns when a held frame is due, or None."""
        cdef int64_t due_ns = self.flush(now_ns)
        return None if due_ns == NEVER_NS else due_ns

    def fault_counts(self):
        """Faults so far, by name."""
        return {
            "loss": self.counters[COUNTER_link_lost],
            "duplicate": self.counters[COUNTER_link_duplicated],
            "corrupt": self.counters[COUNTER_link_corrupted],
            "reorder": self.counters[COUNTER_link_reordered],
        }
