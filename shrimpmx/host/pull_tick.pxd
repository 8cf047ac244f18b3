"""How often an agent that runs a receive handler looks at the timers of pulls."""

from libc.stdint cimport int64_t

from shrimpmx.shared.layout cimport node_header

# A quarter of their resend delay, at least the other.
cdef enum:
    TICKS_PER_RESEND_DELAY = 4
    TICK_MIN_NS = 1_000_000


cdef inline int64_t pull_tick_ns(const node_header *node) noexcept nogil:
    return max(node.pull_resend_delay_ns // TICKS_PER_RESEND_DELAY, <int64_t>TICK_MIN_NS)
