"""The sending end of an emulated line with its faults, and the ends of links written in Python.

A NIC has one line out, which frames pass one after another at the link's rate, and behind it
an ideal switch: a frame arrives at its destination `delay_ns` after its last byte left. Behind
each frame the line stays free for what the sending host takes for the next one. Faults happen
here, from a seed. How a frame reaches the far NIC is the subclass's business: it says whether there
is room (`has_room`) and where the next frame is built (`place`), sends it (`fill`) and makes sent
frames visible (`publish`).
"""

from collections import defaultdict, deque
from heapq import heappop, heappush

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from shrimpmx.link.ends cimport FRAME_READABLE_BYTES, LINK_RETRY_NS, Egress, Ingress, incoming_frame
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.random cimport random_bits, random_state
from shrimpmx.native.trace cimport (
    CAPTURE_CORRUPTED, CAPTURE_DUPLICATED, CAPTURE_HELD, CAPTURE_LOST, capture_fault, capture_write,
)
from shrimpmx.shared.layout cimport (
    COUNTER_link_corrupted, COUNTER_link_duplicated, COUNTER_link_lost, COUNTER_link_reordered,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport (
    PTYPE_MEDIUM_FRAG, WIRE_HEAD_BYTES, WIRE_MARK, wire_geometry, wire_medium, wire_medium_length,
)

from shrimpmx.native.drawing import seed_of
from shrimpmx.wire.tables import PACKET_NAMES


# -- Faults of a link, drawn from a seed: the same seed and the same frames, the same faults.
#
# One `FaultSource` serves one sending end. For each frame it draws once from the stream of every
# fault whose rate is not 0, so that no fault's rate changes which frames meet another one; a lost
# frame meets no other. Packet types outside `LinkFaults.only` draw nothing. Nothing is drawn for
# `overtake` either: every medium message has it alike.

cdef uint64_t ALL = 0xFFFFFFFFFFFFFFFFu
cdef uint32_t ADDRESSES_BYTES = 12


cdef inline bint happens(uint64_t *stream, uint64_t below) noexcept nogil:
    return below != 0 and random_bits(stream) <= below


def _below(double rate):
    """The 64-bit numbers up to this one are the share `rate` of all; 0 for none."""
    return min(int(rate * 2**64), 2**64 - 1)


def _type_mask(names):
    types = {name: ptype for ptype, name in PACKET_NAMES.items()}
    return sum(1 << types[name] for name in set(names)) or 2**64 - 1


cdef class FaultSource:
    """Draws the faults of one sending end of a link.

    Args:
        faults: `shrimpmx.settings.faults.LinkFaults`.
        source: index of the sending node.
    """

    def __init__(self, faults, uint32_t source=0):
        self.lose_below = _below(faults.loss)
        self.corrupt_below = _below(faults.corrupt)
        self.duplicate_below = _below(faults.duplicate)
        self.hold_below = _below(faults.reorder)
        self.reorder_degree = faults.reorder_degree
        self.only = _type_mask(faults.only)
        self.overtake = faults.overtake if (self.only >> PTYPE_MEDIUM_FRAG) & 1 else 0
        self.checked = faults.fcs
        self.streams.lose = random_state(seed_of("loss", faults.seed, source))
        self.streams.corrupt = random_state(seed_of("corruption", faults.seed, source))
        self.streams.duplicate = random_state(seed_of("duplication", faults.seed, source))
        self.streams.hold = random_state(seed_of("reordering", faults.seed, source))
        self.streams.bit = random_state(seed_of("flipped bits", faults.seed, source))

    cdef int draw(self, const uint8_t *frame, uint32_t length) noexcept nogil:
        """The faults of this frame, fault bits OR-ed."""
        cdef int drawn = FAULT_NONE
        cdef uint32_t ptype = frame[WIRE_HEAD_BYTES] & ~WIRE_MARK
        if self.only != ALL and (ptype >= 64 or not (self.only >> ptype) & 1):
            return FAULT_NONE
        if happens(&self.streams.lose, self.lose_below):
            drawn |= FAULT_LOSE
        if happens(&self.streams.corrupt, self.corrupt_below):
            drawn |= FAULT_CORRUPT
        if happens(&self.streams.duplicate, self.duplicate_below):
            drawn |= FAULT_DUPLICATE
        if happens(&self.streams.hold, self.hold_below):
            drawn |= FAULT_HOLD
        return FAULT_LOSE if drawn & FAULT_LOSE else drawn

    cdef overtaking overtaking_of(self, const uint8_t *frame, uint32_t length,
                                  const wire_geometry *geometry) noexcept nogil:
        """What `overtake` makes of this frame; the message's length tells which one is last."""
        cdef const wire_medium *medium = <const wire_medium *>(frame + WIRE_HEAD_BYTES)
        cdef uint32_t message_length, ahead
        if (self.overtake == 0 or length < WIRE_HEAD_BYTES + sizeof(wire_medium)
                or medium.ptype & ~WIRE_MARK != PTYPE_MEDIUM_FRAG):
            return OVERTAKES_NOTHING
        message_length = wire_medium_length(medium, geometry)
        ahead = (<uint32_t>medium.frag_seqnum + 1) * geometry.medium_frag_bytes
        if message_length <= ahead:
            return OVERTAKES
        if message_length <= ahead + self.overtake * geometry.medium_frag_bytes:
            return OVERTAKEN
        return OVERTAKES_NOTHING

    cdef void flip_bit(self, uint8_t *frame, uint32_t length) noexcept nogil:
        """Flip one bit anywhere behind the two addresses."""
        cdef uint64_t bit = random_bits(&self.streams.bit) % ((length - ADDRESSES_BYTES) * 8)
        frame[ADDRESSES_BYTES + bit // 8] ^= 1 << (bit % 8)

    def draw_for(self, bytes frame not None):
        """The faults of this frame, by name; for tests and tools."""
        cdef int drawn = self.draw(<const uint8_t *>frame, <uint32_t>len(frame))
        names = (
            (FAULT_LOSE, "loss"),
            (FAULT_CORRUPT, "corrupt"),
            (FAULT_DUPLICATE, "duplicate"),
            (FAULT_HOLD, "reorder"),
        )
        return tuple(name for bit, name in names if drawn & bit)


cdef uint64_t message_of(const uint8_t *frame) noexcept nogil:
    cdef const wire_medium *medium = <const wire_medium *>(frame + WIRE_HEAD_BYTES)
    # The last bit: no message is 0.
    return (<uint64_t>medium.session << 32 | <uint64_t>medium.lib_seqnum << 16
            | <uint64_t>medium.dst_endpoint << 8 | medium.src_endpoint) << 1 | 1


cdef class HeldFrames:
    """Frames held back so that later ones overtake them, oldest first."""

    def __cinit__(self, uint32_t frame_bytes):
        cdef uint32_t i
        self.memory = <uint8_t *>malloc(<size_t>frame_bytes * HELD_FRAMES_MAX)
        if self.memory == NULL:
            raise MemoryError()
        for i in range(<uint32_t>HELD_FRAMES_MAX):
            self.frames[i].bytes = self.memory + <size_t>i * frame_bytes

    def __dealloc__(self):
        free(self.memory)

    cdef bint hold(self, uint32_t destination, int64_t release_ns, const uint8_t *frame,
                   uint32_t length, bint bad_fcs, uint32_t wanted,
                   uint64_t message) noexcept nogil:
        """Keep a copy of the frame until `wanted` others have gone; false if there is no room."""
        cdef held_frame *held
        if self.count == HELD_FRAMES_MAX:
            return False
        held = &self.frames[self.count]
        held.destination = destination
        held.overtaken = 0
        held.wanted = wanted
        held.message = message
        held.release_ns = release_ns
        held.length = length
        held.bad_fcs = bad_fcs
        memcpy(held.bytes, frame, length)
        self.count += 1
        return True

    cdef uint32_t let_go(self, uint32_t destination, uint64_t message,
                         int64_t now_ns) noexcept nogil:
        """The held fragments of a message are due now; returns how many there are."""
        cdef uint32_t i, found = 0
        for i in range(self.count):
            if (self.frames[i].message == message
                    and self.frames[i].destination == destination):
                self.frames[i].release_ns = now_ns
                found += 1
        return found

    cdef void count_overtaking(self, uint32_t destination) noexcept nogil:
        cdef uint32_t i
        for i in range(self.count):
            if self.frames[i].destination == destination:
                self.frames[i].overtaken += 1

    cdef void drop(self, uint32_t position) noexcept nogil:
        """Forget the frame at `position`; its buffer is used again."""
        cdef uint8_t *buffer = self.frames[position].bytes
        cdef uint32_t i
        self.count -= 1
        for i in range(position, self.count):
            self.frames[i] = self.frames[i + 1]
        self.frames[self.count].bytes = buffer

    cdef int64_t earliest_ns(self) noexcept nogil:
        """When the first of them must go at the latest; NEVER_NS if none is held."""
        cdef int64_t earliest = NEVER_NS
        cdef uint32_t i
        for i in range(self.count):
            if self.frames[i].release_ns < earliest:
                earliest = self.frames[i].release_ns
        return earliest


cdef class EmulatedLine(Egress):
    """The line out of `node`, whose NIC's agent counts its faults.

    Args:
        rate_bits_per_s: rate of the line; 0 for frames that take no time.
        delay_ns: from the last byte leaving to the frame's arrival.
        faults: `LinkFaults`, or None for a perfect link.
    """

    def __init__(self, Node node not None, uint64_t rate_bits_per_s, int64_t delay_ns,
                 faults=None):
        Egress.__init__(self, node)
        self.node = node
        self.counters = <uint64_t *>node.control.agent(node.header.nic_agent).counters
        rate_line_initialise(&self.line, rate_bits_per_s, 8)
        host_gap_initialise(&self.gap, 0, 0, self.source)
        self.delay_ns = delay_ns
        self.frames_per_commit = 1
        if faults is not None and faults.active:
            self.faults = FaultSource(faults, self.source)
            self.held = HeldFrames(self.mtu)
            self.frames_per_commit = 2

    def use_gap(self, int64_t mean_ns, double jitter, uint64_t seed):
        """Leave a gap behind each frame, what the sending host takes for the next one.

        `jitter`: the share of `mean_ns` that is exponentially distributed, 0 to 1.
        """
        host_gap_initialise(&self.gap, mean_ns, jitter, seed)

    cdef bint has_room(self, uint32_t destination, uint32_t wanted) noexcept nogil:
        return False

    cdef uint8_t *place(self, uint32_t destination) noexcept nogil:
        return NULL   # nothing asks for it: there is never room

    cdef void fill(self, uint32_t destination, uint32_t length, int64_t arrival_ns,
                   bint bad_fcs) noexcept nogil:
        pass

    cdef int64_t publish(self, int64_t now_ns) noexcept nogil:
        return NEVER_NS

    cdef uint8_t *prepare(self, uint32_t destination) noexcept nogil:
        if not self.has_room(destination, self.frames_per_commit):
            return NULL
        return self.place(destination)

    cdef void commit(self, int64_t now_ns, uint32_t destination, uint32_t length) noexcept nogil:
        cdef int64_t passed_ns
        if self.faults is not None:
            self.commit_with_faults(now_ns, destination, length)
            return
        if self.capture != NULL:
            self.keep(now_ns, self.place(destination), length, FAULT_NONE)
        passed_ns = self.pass_line(now_ns, length)
        self.fill(destination, length, self.in_order(passed_ns + self.delay_ns), False)

    @cython.final
    cdef int64_t pass_line(self, int64_t now_ns, uint32_t length) noexcept nogil:
        """Let a frame pass the line; when it is through."""
        cdef int64_t passed_ns = rate_line_pass(&self.line, now_ns, length + LINK_OVERHEAD_BYTES)
        self.line.free_ns += host_gap_draw(&self.gap)
        self.sent_ns = passed_ns
        return passed_ns

    @cython.final
    cdef uint32_t keep(self, int64_t now_ns, const uint8_t *frame, uint32_t length,
                       int faults) noexcept nogil:
        cdef uint32_t flags = 0
        if faults & FAULT_LOSE:
            flags |= CAPTURE_LOST
        if faults & FAULT_CORRUPT:
            flags |= CAPTURE_CORRUPTED
        if faults & FAULT_DUPLICATE:
            flags |= CAPTURE_DUPLICATED
        # When the line is free for its first bit.
        return capture_write(self.capture, max(now_ns, self.line.free_ns), flags, frame, length)

    @cython.final
    cdef int64_t in_order(self, int64_t arrival_ns) noexcept nogil:
        """Times of arrival never go back."""
        if arrival_ns > self.last_arrival_ns:
            self.last_arrival_ns = arrival_ns
        return self.last_arrival_ns

    @cython.final
    cdef void commit_with_faults(self, int64_t now_ns, uint32_t destination,
                                 uint32_t length) noexcept nogil:
        # prepare() found room for this frame and a copy, so nothing here asks for room again.
        cdef uint8_t *frame = self.place(destination)
        # Before a bit of what tells it is flipped.
        cdef overtaking place = self.faults.overtaking_of(frame, length,
                                                          &self.node.header.geometry)
        cdef uint64_t message = message_of(frame) if place != OVERTAKES_NOTHING else 0
        cdef uint32_t overtaken
        cdef int drawn = self.faults.draw(frame, length)
        cdef int64_t arrival_ns = self.delay_ns
        cdef bint fill = not drawn & FAULT_LOSE
        cdef bint bad_fcs = drawn & FAULT_CORRUPT and self.faults.checked
        cdef uint32_t captured = 0
        if self.capture != NULL:
            captured = self.keep(now_ns, frame, length, drawn)
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
            self.fill(destination, length, self.in_order(arrival_ns), bad_fcs)
            self.held.count_overtaking(destination)
        elif self.capture != NULL and not drawn & FAULT_LOSE:
            capture_fault(self.capture, captured, CAPTURE_HELD)
        if place == OVERTAKES:
            # Behind the last fragment, or alone if that was lost.
            overtaken = self.held.let_go(destination, message, now_ns)
            self.counters[COUNTER_link_reordered] += overtaken if fill else 0
        if drawn & FAULT_DUPLICATE:
            self.counters[COUNTER_link_duplicated] += 1
            arrival_ns = self.delay_ns + rate_line_pass(&self.line, now_ns,
                                                        length + LINK_OVERHEAD_BYTES)
            # If the frame itself is held back, its copy goes ahead of it.
            self.send_copy(destination, frame, length, arrival_ns, bad_fcs)
        self.release(now_ns)

    @cython.final
    cdef void send_copy(self, uint32_t destination, const uint8_t *frame, uint32_t length,
                        int64_t arrival_ns, bint bad_fcs) noexcept nogil:
        """There is room for it."""
        cdef uint8_t *place = self.place(destination)
        if place != frame:
            memcpy(place, frame, length)
        self.fill(destination, length, self.in_order(arrival_ns), bad_fcs)

    @cython.final
    cdef void release(self, int64_t now_ns) noexcept nogil:
        """Send the held frames that enough others have overtaken, or that are due."""
        cdef uint32_t i = 0
        cdef held_frame *held
        cdef int64_t passed_ns
        while i < self.held.count:
            held = &self.held.frames[i]
            if ((held.overtaken < held.wanted and held.release_ns > now_ns)
                    or not self.has_room(held.destination, 1)):
                i += 1
                continue
            passed_ns = now_ns if held.message == 0 else self.pass_line(now_ns, held.length)
            self.send_copy(held.destination, held.bytes, held.length, passed_ns + self.delay_ns,
                           held.bad_fcs)
            self.held.drop(i)

    cdef int64_t flush(self, int64_t now_ns) noexcept nogil:
        cdef int64_t held_ns
        if self.faults is None:
            return self.publish(now_ns)
        self.release(now_ns)
        held_ns = self.held.earliest_ns()
        if held_ns <= now_ns:   # due already, so the far end had no room
            held_ns = now_ns + LINK_RETRY_NS
        return min(self.publish(now_ns), held_ns)

    def fault_counts(self):
        """Faults so far of this node's links, by name."""
        return {
            "loss": self.counters[COUNTER_link_lost],
            "duplicate": self.counters[COUNTER_link_duplicated],
            "corrupt": self.counters[COUNTER_link_corrupted],
            "reorder": self.counters[COUNTER_link_reordered],
        }


# -- Ends of links written in Python: subclass both and hand them to a NIC.
#
# Each call takes the GIL. The first exception of a subclass is kept in `failure`; after it the
# subclass is not called any more, and the runner of the NIC ends the run.

cdef class PythonEgress(EmulatedLine):
    """Base of a user's own egress; rate, delay, gap and faults are those of EmulatedLine.

    Override `reaches` and `carry`; `room` if the link can be full; `deliver` if frames do not
    travel one by one.
    """

    def __cinit__(self, Node node not None, *args, **kwargs):
        # Faults read whole headers, however short a frame is.
        self.frame = <uint8_t *>calloc(1, node.header.geometry.mtu_bytes + FRAME_READABLE_BYTES)
        if self.frame == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.frame)

    def reaches(self, node):
        """Whether there is a link to `node`."""
        return False

    def carry(self, destination, frame, arrival_ns, bad_fcs):
        """Send `frame` (bytes), whose last bit arrives at `arrival_ns` by this end's clock, with
        a frame check sequence that does not fit if `bad_fcs`.
        """

    def room(self, destination):
        """How many frames `carry` takes now. Asked for each frame before it is built, and for 2 if
        there are faults, as one frame may become two.
        """
        return 2

    def deliver(self, now_ns):
        """Called once per step, behind all calls of `carry`: make their frames visible at the
        far end. Returns when to be called again at the latest, or None.
        """
        return None

    cdef bint has_destination(self, uint32_t node) noexcept nogil:
        with gil:
            try:
                return self.failure is None and bool(self.reaches(node))
            except BaseException as error:
                self.failure = error
                return False

    cdef bint has_room(self, uint32_t destination, uint32_t wanted) noexcept nogil:
        with gil:
            try:
                return self.failure is None and self.room(destination) >= wanted
            except BaseException as error:
                self.failure = error
                return False

    cdef uint8_t *place(self, uint32_t destination) noexcept nogil:
        return self.frame

    cdef void fill(self, uint32_t destination, uint32_t length, int64_t arrival_ns,
                   bint bad_fcs) noexcept nogil:
        with gil:
            try:
                if self.failure is None:
                    self.carry(destination, (<const char *>self.frame)[:length], arrival_ns,
                               bool(bad_fcs))
            except BaseException as error:
                self.failure = error

    cdef int64_t publish(self, int64_t now_ns) noexcept nogil:
        with gil:
            try:
                due_ns = self.deliver(now_ns) if self.failure is None else None
                return NEVER_NS if due_ns is None else <int64_t>due_ns
            except BaseException as error:
                self.failure = error
        return NEVER_NS


cdef class PythonIngress(Ingress):
    """Base of a user's own ingress. Override `arrivals`; where no doorbell wakes the NIC, it is
    called every `look_every_ns`.
    """

    def __cinit__(self, *args, **kwargs):
        self.waiting = []
        self.finished = defaultdict(int)
        self.taken = defaultdict(deque)

    def arrivals(self, now_ns):
        """Called once per step: the frames that have come since, each as (arrival_ns, source,
        frame, bad_fcs), those of one source in order. Times are of this node's clock, which
        stands at `now_ns`; they may lie ahead.
        """
        return ()

    cdef void look(self, int64_t now_ns) noexcept nogil:
        with gil:
            try:
                if self.failure is None:
                    if self.look_every_ns:
                        self.look_ns = now_ns + self.look_every_ns
                    for arrival_ns, source, frame, bad_fcs in self.arrivals(now_ns):
                        heappush(self.waiting, (
                            <int64_t>arrival_ns, self.number, <uint32_t>source,
                            bytes(frame).ljust(FRAME_READABLE_BYTES, b"\0"), len(frame),
                            bool(bad_fcs)))
                        self.number += 1
            except BaseException as error:
                self.failure = error
            self.find_earliest()

    cdef void find_earliest(self) noexcept:
        self.arrival_ns = self.waiting[0][0] if self.waiting else NEVER_NS

    cdef void take(self, incoming_frame *taken) noexcept nogil:
        with gil:
            _, _, source, frame, length, bad_fcs = heappop(self.waiting)
            self.taken[source].append(frame)
            taken.frame = <const uint8_t *><const char *>frame
            taken.length = length
            taken.source = source
            taken.bad_fcs = bad_fcs
            self.find_earliest()

    cdef void finish(self, uint32_t source) noexcept nogil:
        with gil:
            self.finished[source] += 1

    cdef void finish_all(self) noexcept nogil:
        with gil:
            for source, frames in self.taken.items():
                self.finished[source] = len(frames)

    cdef void hand_back(self) noexcept nogil:
        with gil:
            for source, count in self.finished.items():
                for _ in range(count):
                    self.taken[source].popleft()
            self.finished.clear()
