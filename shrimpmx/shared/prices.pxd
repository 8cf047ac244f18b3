"""What memory costs the cores of an emulated host; see prices.pyx."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.shared.layout cimport NODE_VECTORS_MAX


cdef struct host_prices:
    double copy_ns_per_byte
    bint keeps_copies                # the copies for a resend cost ranks, too
    int64_t handover_ns              # of an endpoint, beside its lines
    int64_t send_message_ns          # of a rank, beside its packets
    int64_t receive_message_ns       # ... beside its events
    uint32_t cores
    int64_t *lines_ns                # [to * cores + from]


# A cache line that core `source` had last comes to core `to`, each + 1; 0: no core is known.
cdef inline int64_t line_price(const host_prices *prices, uint32_t source,
                               uint32_t to) noexcept nogil:
    if source == 0 or to == 0 or source > prices.cores or to > prices.cores:
        return 0
    return prices.lines_ns[(to - 1) * prices.cores + source - 1]


cdef inline int64_t copy_price(const host_prices *prices, uint32_t length) noexcept nogil:
    return <int64_t>(prices.copy_ns_per_byte * length)


cdef class Prices:
    cdef host_prices prices
    cdef int64_t cold_packet_ns
    cdef int64_t reply_ns            # a pull reply that a handler sends, beside send_cost_ns
    cdef int64_t poll_ns             # a poll, beside its frames
    cdef uint32_t polled_by[NODE_VECTORS_MAX]   # the core that polled each ring last, + 1

    # A core, its number + 1, begins to poll a ring: what each frame there costs it more, since
    # another one polled that last.
    cdef int64_t begin_poll(self, uint32_t vector, uint32_t core) noexcept nogil
    # Whether nothing costs anything.
    cdef bint is_free(self) noexcept nogil
