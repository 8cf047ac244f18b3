"""The sending end of an emulated line.

A NIC has one line out, which frames pass one after another at the link's rate, and behind it
an ideal switch: a frame arrives at its destination `delay_ns` after its last byte left. Behind
each frame the line stays free for what the sending host takes for the next one. Faults happen
here, from a seed. How a frame reaches the far NIC is the subclass's business: it says whether there
is room (`has_room`) and where the next frame is built (`place`), sends it (`fill`) and makes sent
frames visible (`publish`).
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.link.ends cimport LINK_RETRY_NS, Egress
from shrimpmx.link.faults cimport (
    FAULT_CORRUPT, FAULT_DUPLICATE, FAULT_HOLD, FAULT_LOSE, FAULT_NONE, OVERTAKEN, OVERTAKES,
    OVERTAKES_NOTHING, FaultSource, HeldFrames, held_frame, message_of, overtaking,
)
from shrimpmx.link.gap cimport host_gap_draw, host_gap_initialise
from shrimpmx.link.rate cimport rate_line_initialise, rate_line_pass
from shrimpmx.native.capture cimport (
    CAPTURE_CORRUPTED, CAPTURE_DUPLICATED, CAPTURE_HELD, CAPTURE_LOST, capture_fault, capture_write,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.layout cimport (
    COUNTER_link_corrupted, COUNTER_link_duplicated, COUNTER_link_lost, COUNTER_link_reordered,
)
from shrimpmx.shared.node cimport Node


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
