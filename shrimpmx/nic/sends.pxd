"""The sends that are not complete yet: frames on their way out of the NIC.

Frames leave in the order in which they were sent. Times that do not fit any more share the last
entry: such sends complete together, a little late.
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.clock cimport NEVER_NS


cdef enum:
    SENDS_ENTRIES = 1024     # as many as a link ring holds by default; a power of two


cdef struct pending_sends:
    int64_t times_ns[SENDS_ENTRIES]
    uint32_t counts[SENDS_ENTRIES]
    uint32_t first           # free-running
    uint32_t behind          # the last
    int64_t due_ns           # when the first completes; NEVER_NS: there is none


cdef inline void sends_initialise(pending_sends *sends) noexcept nogil:
    sends.first = sends.behind = 0
    sends.due_ns = NEVER_NS


cdef inline void sends_add(pending_sends *sends, int64_t time_ns) noexcept nogil:
    """A frame that has left at `time_ns`, not before those ahead."""
    cdef uint32_t last = (sends.behind - 1) & (SENDS_ENTRIES - 1)
    if sends.first == sends.behind:
        sends.due_ns = time_ns
    elif sends.times_ns[last] >= time_ns or sends.behind - sends.first == SENDS_ENTRIES:
        sends.times_ns[last] = max(sends.times_ns[last], time_ns)
        sends.counts[last] += 1
        sends.due_ns = sends.times_ns[sends.first & (SENDS_ENTRIES - 1)]
        return
    last = sends.behind & (SENDS_ENTRIES - 1)
    sends.times_ns[last] = time_ns
    sends.counts[last] = 1
    sends.behind += 1


cdef inline uint32_t sends_complete(pending_sends *sends) noexcept nogil:
    """End those that complete first; how many they are."""
    cdef uint32_t count = sends.counts[sends.first & (SENDS_ENTRIES - 1)]
    sends.first += 1
    sends.due_ns = NEVER_NS
    if sends.first != sends.behind:
        sends.due_ns = sends.times_ns[sends.first & (SENDS_ENTRIES - 1)]
    return count
