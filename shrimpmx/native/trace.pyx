"""What a run records: what its agents did, and the frames on its links; see trace.h."""

from operator import itemgetter

from shrimpmx.native.records import NamedTuple

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.atomics cimport load_acquire_u64

from shrimpmx.errors import InputError, SegmentError


# -- The binary trace: one ring of the last records per agent; see trace.h.
#
# Off, it costs one compare with NULL per record. On, it keeps the last `entries`
# records of each agent, readable while the run goes on and after an agent died.

# Records kept per agent: 128 KiB each, about a millisecond of a busy NIC (ours).
DEFAULT_ENTRIES = 4096


class TraceRecord(NamedTuple):
    """One record: the time (ns, the run's clock), the agent's index, what, and two values."""

    __slots__ = ()

    time_ns: int
    agent: int
    kind: str
    a: int
    b: int


cdef str kind_text(uint32_t kind, uint32_t which):
    cdef const char *text = trace_kind_text(kind, which)
    return f"kind{kind}" if text is NULL else text.decode()


def kind_values(str kind not None):
    """What the two values of a kind of record mean."""
    number = kind_names().index(kind)
    return kind_text(number, 1), kind_text(number, 2)


def kind_names():
    """The name of each kind of record, in the order of its number."""
    return [kind_text(kind, 0) for kind in range(TRACE_KINDS_COUNT)]


cdef bint rings_fit(Trace trace):
    """Whether all rings lie in the segment, each with as many entries as the header says."""
    cdef trace_header *header = trace.header
    cdef uint64_t size_bytes = trace.segment.size_bytes
    cdef uint64_t ring_bytes
    cdef uint32_t index
    if size_bytes < sizeof(trace_header):
        return False
    if header.entries == 0 or header.entries & (header.entries - 1):
        return False
    ring_bytes = sizeof(trace_ring) + <uint64_t>header.entries * sizeof(trace_entry)
    if header.stride != ring_bytes:
        return False
    if (size_bytes - sizeof(trace_header)) / ring_bytes < header.rings_count:
        return False
    for index in range(header.rings_count):
        if trace.ring(index).entries != header.entries:
            return False
    return True


cdef class Trace:
    """The rings of all agents of a run, in one segment of kind SEGMENT_TRACE."""

    @staticmethod
    def size_bytes(uint32_t agents_count, uint32_t entries=DEFAULT_ENTRIES):
        """Size of the segment that holds `entries` records of each agent."""
        return sizeof(trace_header) + agents_count * (
            sizeof(trace_ring) + <uint64_t>entries * sizeof(trace_entry))

    @staticmethod
    def create(segment, uint32_t agents_count, uint32_t entries=DEFAULT_ENTRIES):
        """Lay out empty rings in a fresh segment; `entries` is a power of two."""
        cdef Trace trace = Trace.__new__(Trace)
        cdef uint32_t index
        if entries == 0 or entries & (entries - 1):
            raise InputError(f"trace entries must be a power of two, not {entries}")
        needed = Trace.size_bytes(agents_count, entries)
        if segment.size_bytes < needed:
            raise SegmentError(
                f"a trace of {agents_count} agents needs {needed} bytes, "
                f"not {segment.size_bytes}")
        trace.segment = segment
        trace.header = <trace_header *><size_t>segment.address
        trace.header.rings_count = agents_count
        trace.header.entries = entries
        trace.header.stride = sizeof(trace_ring) + <uint64_t>entries * sizeof(trace_entry)
        for index in range(agents_count):
            trace.ring(index).agent = index
            trace.ring(index).entries = entries
            trace.ring(index).next = 0
        return trace

    @staticmethod
    def attach(segment):
        """The rings in a segment that another process laid out; SegmentError if it is damaged."""
        cdef Trace trace = Trace.__new__(Trace)
        trace.segment = segment
        trace.header = <trace_header *><size_t>segment.address
        if not rings_fit(trace):
            raise SegmentError(f"{segment!r} is too small for its trace")
        return trace

    cdef trace_ring *ring(self, uint32_t agent) noexcept nogil:
        return trace_ring_at(self.header, agent)

    def record(self, uint32_t agent, int64_t time_ns, str kind, uint64_t a=0, uint64_t b=0):
        """Add a record from Python; one writer per agent."""
        trace_record(self.checked_ring(agent), time_ns, kind_names().index(kind), a, b)

    cdef trace_ring *checked_ring(self, uint32_t agent) except NULL:
        if agent >= self.header.rings_count:
            raise InputError(
                f"there is no agent {agent} in this trace; it has {self.header.rings_count}")
        return trace_ring_at(self.header, agent)

    def written(self, uint32_t agent):
        """How many records the agent has written since the start, those overwritten too."""
        return self.checked_ring(agent).next

    def records_of(self, uint32_t agent):
        """The agent's last records, oldest first. A full ring shows one less than it has room for:
        the next one may be half written over the oldest.
        """
        cdef trace_ring *ring = self.checked_ring(agent)
        cdef uint64_t end = load_acquire_u64(&ring.next)  # T1': pairs with T1
        cdef uint64_t index = end - ring.entries if end > ring.entries else 0
        cdef uint64_t start = index
        cdef trace_entry *entry
        cdef list kinds = kind_names()
        cdef object new = tuple.__new__
        found = []
        while index < end:
            entry = &ring.slots[index & (ring.entries - 1)]
            kind = kinds[entry.kind] if entry.kind < len(kinds) else kind_text(entry.kind, 0)
            # Not by the class, which looks for names and defaults.
            found.append(new(
                TraceRecord, (entry.time_ns, entry.agent, kind, entry.a, entry.b)))
            index += 1
        return found[max(trace_whole_from(ring), start) - start:]

    def records(self):
        """The last records of all agents, by time."""
        found = []
        for agent in range(self.header.rings_count):
            found.extend(self.records_of(agent))
        return sorted(found, key=itemgetter(0))


# -- The frames that pass the ends of links: one ring of the last ones per end; see trace.h.
#
# Off, it costs one compare with NULL per frame and end.

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


cdef bint frames_fit(Capture capture):
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
        if not frames_fit(capture):
            raise SegmentError(f"{segment!r} is too small for its capture")
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
