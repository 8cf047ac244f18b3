"""Computing for a while: what an application does, or a slower host takes, between two calls."""

from libc.stdint cimport int64_t

from shrimpmx.native.clock cimport Clock, clock_now_ns

cdef enum:
    # A longer step between two looks at the clock means that the CPU was taken away (ours:
    # a look costs 20 to 60 ns, an interrupt more than a microsecond).
    BURN_STEP_NS = 1_000


cdef inline void burn_ns(const Clock *clock, int64_t delay_ns) noexcept nogil:
    """Use `delay_ns` of CPU: time during which this process was preempted does not count."""
    cdef int64_t before_ns = clock_now_ns(clock)
    cdef int64_t now_ns, step_ns
    while delay_ns > 0:
        now_ns = clock_now_ns(clock)
        step_ns = now_ns - before_ns
        delay_ns -= step_ns if step_ns < BURN_STEP_NS else BURN_STEP_NS
        before_ns = now_ns
