"""A flow of another protocol's packets, evenly spaced or in a closed loop."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef class OtherFlow:
    cdef readonly uint32_t frame_bytes
    cdef readonly double interval_ns
    cdef readonly uint32_t window    # packets that may be unanswered; 0: it is an open loop
    cdef uint8_t frame[1500]         # what each packet looks like
    cdef uint64_t number             # of the next packet
    cdef uint64_t answered           # all before this one are
    cdef int64_t patience_ns         # after so long without an answer it goes on by one packet
    cdef int64_t started_ns
    cdef int64_t next_ns             # when the next packet is to be sent

    # Begins, from node to node, with a packet at `now_ns`.
    cdef void start(self, int64_t now_ns, uint32_t source, uint32_t destination,
                    int64_t patience_ns) noexcept nogil
    # Puts the next packet at `place`, which has room for `frame_bytes`.
    cdef void build(self, uint8_t *place, int64_t now_ns) noexcept nogil
    # The packet of that number was answered, and so were all before it.
    cdef void answer(self, uint32_t number, int64_t now_ns) noexcept nogil
