"""The frames that pass the ends of links: one ring of the last ones per end; see capture.h.

Off, it costs one compare with NULL per frame and end.
"""

from typing import NamedTuple

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.errors import InputError, SegmentError
from shrimpmx.native.atomics cimport load_acquire_u64

# A slot is whole cache lines, so that an end writes none of another slot's.
cdef enum:
    LINE_BYTES = 64
    LEAST_FRAMES = 2

FAULTS = {
    CAPTURE_LOST: "link_lost",
    CAPTURE_CORRUPTED: "link_corrupted",
    CAPTURE_DUPLICATED: "link_duplicated",
    CAPTURE_HELD: "link_reordered",
}


class CapturedFrame(NamedTuple):
    """One frame at one end of a link.

    `time_ns`: of the run's clock; when its first bit leaves, or its last one has arrived.
    `length`: its bytes on the link, of which `data` has the first. `faults`: those of its link, by
    the NIC's counters, where it is sent. `dropped`: the kind of agent that drops it and the number
    of its counter; None if none does.
    """

    time_ns: int
    end: int
    received: bool
    length: int
    data: bytes
    bad_fcs: bool
    faults: tuple
    dropped: tuple | None


cdef uint64_t slot_bytes(uint32_t snap_bytes):
    cdef uint64_t needed = sizeof(captured_frame) + <uint64_t>snap_bytes
    return (needed + LINE_BYTES - 1) // LINE_BYTES * LINE_BYTES


cdef uint32_t frames_in(uint64_t end_bytes, uint32_t snap_bytes):
    """The power of two of frames that so many bytes hold."""
    cdef uint32_t frames = LEAST_FRAMES
    while frames < 1 << 30 and frames * 2 * slot_bytes(snap_bytes) <= end_bytes:
        frames *= 2
    return frames


cdef uint64_t ring_bytes(uint32_t frames, uint32_t snap_bytes):
    return sizeof(capture_ring) + frames * slot_bytes(snap_bytes)


cdef bint rings_fit(Capture capture):
    """Whether all rings lie in the segment, each of the form that the header says."""
    cdef capture_header *header = capture.header
    cdef uint64_t size_bytes = capture.segment.size_bytes
    cdef uint32_t index
    cdef capture_ring *ring
    if size_bytes < sizeof(capture_header):
        return False
    if header.frames < LEAST_FRAMES or header.frames & (header.frames - 1):
        return False
    if header.stride != ring_bytes(header.frames, header.snap_bytes):
        return False
    if (size_bytes - sizeof(capture_header)) // header.stride < header.ends_count:
        return False
    for index in range(header.ends_count):
        ring = capture.ring(index)
        if (ring.frames != header.frames or ring.snap_bytes != header.snap_bytes
                or ring.stride != slot_bytes(header.snap_bytes)):
            return False
    return True


cdef class Capture:
    """The rings of all ends of a run's links, in one segment of kind SEGMENT_CAPTURE.

    `end_bytes`: the room for the last frames of each end, which keeps two at least. `snap_bytes`:
    kept of each frame, at most.
    """

    @staticmethod
    def size_bytes(uint32_t ends_count, uint64_t end_bytes, uint32_t snap_bytes):
        """Size of the segment for so many ends."""
        return sizeof(capture_header) + ends_count * ring_bytes(
            frames_in(end_bytes, snap_bytes), snap_bytes)

    @staticmethod
    def create(segment, uint32_t ends_count, uint64_t end_bytes, uint32_t snap_bytes):
        """Lay out empty rings in a fresh segment."""
        cdef Capture capture = Capture.__new__(Capture)
        cdef uint32_t frames = frames_in(end_bytes, snap_bytes)
        cdef uint32_t index
        cdef capture_ring *ring
        needed = Capture.size_bytes(ends_count, end_bytes, snap_bytes)
        if segment.size_bytes < needed:
            raise SegmentError(
                f"a capture of {ends_count} ends of links needs {needed} bytes, "
                f"not {segment.size_bytes}")
        capture.segment = segment
        capture.header = <capture_header *><size_t>segment.address
        capture.header.ends_count = ends_count
        capture.header.frames = frames
        capture.header.snap_bytes = snap_bytes
        capture.header.stride = ring_bytes(frames, snap_bytes)
        for index in range(ends_count):
            ring = capture.ring(index)
            ring.frames = frames
            ring.snap_bytes = snap_bytes
            ring.stride = slot_bytes(snap_bytes)
        return capture

    @staticmethod
    def attach(segment):
        """The rings in a segment that another process laid out; SegmentError if it is damaged."""
        cdef Capture capture = Capture.__new__(Capture)
        capture.segment = segment
        capture.header = <capture_header *><size_t>segment.address
        if not rings_fit(capture):
            raise SegmentError(f"{segment!r} does not hold the capture that it says it holds")
        return capture

    cdef capture_ring *ring(self, uint32_t end) noexcept nogil:
        return capture_ring_at(self.header, end)

    cdef capture_ring *checked_ring(self, uint32_t end) except NULL:
        if end >= self.header.ends_count:
            raise InputError(
                f"there is no end {end} in this capture; it has {self.header.ends_count}")
        return capture_ring_at(self.header, end)

    @property
    def snap_bytes(self):
        """How many bytes of a frame it keeps, at most."""
        return self.header.snap_bytes

    def written(self, uint32_t end):
        """How many frames have passed the end, those that newer ones have replaced too."""
        return self.checked_ring(end).next

    def frames_of(self, uint32_t end):
        """The last frames of an end, in the order in which they passed it. A full ring shows one
        less than it has room for: a writer that was killed may have begun the next one.
        """
        cdef capture_ring *ring = self.checked_ring(end)
        cdef uint64_t behind = load_acquire_u64(&ring.next)  # C1': pairs with C1
        cdef uint64_t index = behind - ring.frames + 1 if behind >= ring.frames else 0
        found = []
        while index < behind:
            found.append(self.shown(end, capture_frame_at(ring, index)))
            index += 1
        return found

    cdef object shown(self, uint32_t end, const captured_frame *frame):
        cdef uint32_t kept = min(frame.kept, self.header.snap_bytes)
        dropped = None
        if frame.dropped != 0:
            dropped = frame.dropped >> 16, (frame.dropped & 0xFFFF) - 1
        return CapturedFrame(
            frame.time_ns,
            end,
            frame.flags & CAPTURE_RECEIVED != 0,
            frame.length,
            (<const char *>frame.bytes)[:kept],
            frame.flags & CAPTURE_BAD_FCS != 0,
            tuple(name for flag, name in FAULTS.items() if frame.flags & flag),
            dropped,
        )

    def frames(self):
        """The last frames of all ends, by time."""
        found = []
        for end in range(self.header.ends_count):
            found.extend(self.frames_of(end))
        return sorted(found, key=lambda frame: frame.time_ns)
