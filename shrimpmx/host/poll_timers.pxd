"""Timers of polls that no interrupt begins: one per vector, of one irq agent."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport NODE_VECTORS_MAX

cdef struct poll_timers:
    uint64_t running                        # vectors whose timer runs, by bits
    int64_t next_ns                         # the first of them; NEVER_NS: none runs
    int64_t[NODE_VECTORS_MAX] due_ns        # when it expires


cdef inline void timer_start(poll_timers *timers, uint32_t number, int64_t due_ns) noexcept nogil:
    timers.running |= <uint64_t>1 << number
    timers.due_ns[number] = due_ns
    timers.next_ns = min(timers.next_ns, due_ns)


cdef inline void timer_stop(poll_timers *timers, uint32_t number) noexcept nogil:
    """`next_ns` may stay too early: a look at the timers puts it right."""
    timers.running &= ~(<uint64_t>1 << number)


cdef inline bint timer_runs(const poll_timers *timers, uint32_t number) noexcept nogil:
    return timers.running >> number & 1


cdef inline bint timer_has_expired(const poll_timers *timers, uint32_t number,
                                   int64_t now_ns) noexcept nogil:
    return timer_runs(timers, number) and now_ns >= timers.due_ns[number]
