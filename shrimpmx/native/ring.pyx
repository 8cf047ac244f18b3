"""A Python door to the rings of ring.h, for tests and for looking into a segment.

Agents use ring.h directly; nothing here is on a packet's way.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from shrimpmx.errors import InputError


def ring_bytes(uint32_t entries, uint32_t slot_bytes):
    """Memory that a ring of so many slots takes, with its header."""
    return sizeof(ring) + <size_t>entries * slot_bytes


cdef class RingView:
    """One ring in a writable buffer (bytearray, mmap). Holds the buffer while it lives."""

    cdef ring *ring
    cdef Py_buffer memory

    def __cinit__(self, buffer, size_t offset=0, *args):
        PyObject_GetBuffer(buffer, &self.memory, PyBUF_WRITABLE)
        if offset + sizeof(ring) > <size_t>self.memory.len:
            raise InputError(f"a ring header at {offset} does not fit {self.memory.len} bytes")
        self.ring = <ring *>(<char *>self.memory.buf + offset)

    def __dealloc__(self):
        PyBuffer_Release(&self.memory)

    @staticmethod
    def create(buffer, uint32_t entries, uint32_t slot_bytes, size_t offset=0,
               bint reuses_slots=False):
        """A fresh, empty ring at `offset` of `buffer`, slots right behind its header."""
        if entries == 0 or entries & (entries - 1):
            raise InputError(f"a ring's entries must be a power of two, not {entries}")
        cdef RingView view = RingView(buffer, offset)
        if offset + ring_bytes(entries, slot_bytes) > <size_t>view.memory.len:
            raise InputError(
                f"{entries} slots of {slot_bytes} bytes do not fit {view.memory.len} bytes")
        ring_initialise(view.ring, entries, slot_bytes, sizeof(ring))
        view.ring.reuses_slots = reuses_slots
        return view

    def start_at(self, uint32_t index):
        """Empty the ring and let its free-running indices start at `index`."""
        self.ring.head = self.ring.reserved = self.ring.tail_seen = index
        self.ring.tail = self.ring.head_seen = index

    # Producer.

    def free(self, uint32_t wanted=1):
        """Slots that may be filled; exact only if fewer than `wanted`."""
        return ring_free(self.ring, wanted)

    def fill(self, bytes data):
        """Put `data` in the next slot, not yet visible; False if the ring is full."""
        cdef size_t length = len(data)
        if length > self.ring.slot_bytes:
            raise InputError(f"{length} bytes do not fit a slot of {self.ring.slot_bytes}")
        if ring_free(self.ring, 1) == 0:
            return False
        memset(ring_next(self.ring), 0, self.ring.slot_bytes)
        memcpy(ring_next(self.ring), <const char *>data, length)
        ring_fill(self.ring)
        return True

    def publish(self):
        """Make all filled slots visible."""
        ring_publish(self.ring)

    def push(self, bytes data):
        """fill() and publish(); False if the ring is full."""
        if not self.fill(data):
            return False
        self.publish()
        return True

    # Consumer.

    def available(self, uint32_t wanted=1):
        """Slots that may be read; exact only if fewer than `wanted`."""
        return ring_available(self.ring, wanted)

    def peek(self, uint32_t ahead=0):
        """The bytes of the slot `ahead` of the next one, or None if it is not there."""
        if ring_available(self.ring, ahead + 1) <= ahead:
            return None
        return (<char *>ring_slot(self.ring, self.ring.tail + ahead))[:self.ring.slot_bytes]

    def consume(self, uint32_t count):
        """Hand `count` slots back."""
        if ring_available(self.ring, count) < count:
            raise InputError(f"only {ring_available(self.ring, count)} slots can be handed back")
        ring_consume(self.ring, count)

    def pop(self):
        """The next slot's bytes, handed back; None if the ring is empty."""
        data = self.peek()
        if data is not None:
            ring_consume(self.ring, 1)
        return data

    # Any process.

    @property
    def depth(self):
        """Slots published and not handed back."""
        return ring_depth(self.ring)

    @property
    def indices(self):
        """(head, tail), free-running modulo 2**32."""
        return self.ring.head, self.ring.tail

    @property
    def entries(self):
        return self.ring.entries
