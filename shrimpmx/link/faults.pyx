"""Faults of a link, drawn from a seed: the same seed and the same frames, the same faults.

One `FaultSource` serves one sending end. For each frame it draws once from the stream of every
fault whose rate is not 0, so that no fault's rate changes which frames meet another one; a lost
frame meets no other. Packet types outside `LinkFaults.only` draw nothing. Nothing is drawn for
`overtake` either: every medium message has it alike.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.random cimport random_bits, random_state
from shrimpmx.wire.wire cimport (
    PTYPE_MEDIUM_FRAG, WIRE_HEAD_BYTES, WIRE_MARK, wire_geometry, wire_medium, wire_medium_length,
)

from shrimpmx.native.drawing import seed_of
from shrimpmx.wire.names import PACKET_NAMES

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
