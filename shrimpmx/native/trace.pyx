"""The binary trace: one ring of the last records per agent; see trace.h.

Off, it costs one compare with NULL per record. On, it keeps the last `entries`
records of each agent, readable while the run goes on and after an agent died.
"""

from typing import NamedTuple

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.errors import InputError, SegmentError
from shrimpmx.native.atomics cimport load_acquire_u64


# Records kept per agent: 128 KiB each, about a millisecond of a busy NIC (ours).
DEFAULT_ENTRIES = 4096


class TraceRecord(NamedTuple):
    """One record: the time (ns, the run's clock), the agent's index, what, and two values."""

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
            raise SegmentError(f"{segment!r} does not hold the trace that it says it holds")
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
        found = []
        while index < end:
            entry = &ring.slots[index & (ring.entries - 1)]
            found.append(TraceRecord(
                entry.time_ns, entry.agent, kind_text(entry.kind, 0), entry.a, entry.b))
            index += 1
        return found[max(trace_whole_from(ring), start) - start:]

    def records(self):
        """The last records of all agents, by time."""
        found = []
        for agent in range(self.header.rings_count):
            found.extend(self.records_of(agent))
        return sorted(found, key=lambda record: record.time_ns)
