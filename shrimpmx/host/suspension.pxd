"""Suspension of interrupts: ranks poll, and the irq agent of `timer_core` keeps the time.

While its looks find frames a rank leaves the token SUSPENDED, with a time until when. The agent of
the vector's timer core goes on when that time is over, or at once when the rank hands the token
on. Of the token, `watched` and the fences T1 and T1' see token.pxd.
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.host.poll_timers cimport poll_timers, timer_has_expired, timer_start, timer_stop
from shrimpmx.native.atomics cimport (
    full_fence, load_relaxed_u32, load_relaxed_u64, store_relaxed_u32,
)
from shrimpmx.shared.layout cimport TOKEN_RESUMED, TOKEN_SUSPENDED, interrupt_vector


cdef inline void suspension_watch(poll_timers *timers, interrupt_vector *vector, uint32_t number,
                                  int64_t due_ns) noexcept nogil:
    """From now on the agent looks by itself, at `due_ns` at the latest."""
    timer_start(timers, number, due_ns)
    store_relaxed_u32(&vector.watched, 1)


cdef inline void suspension_unwatch(poll_timers *timers, interrupt_vector *vector,
                                    uint32_t number) noexcept nogil:
    timer_stop(timers, number)
    store_relaxed_u32(&vector.watched, 0)


cdef inline int64_t suspended_until_ns(interrupt_vector *vector) noexcept nogil:
    return <int64_t>load_relaxed_u64(&vector.suspended_until_ns)


cdef inline bint suspension_is_over(poll_timers *timers, interrupt_vector *vector, uint32_t number,
                                    uint32_t seen, int64_t now_ns) noexcept nogil:
    """Whether to take the token, which is `seen`, from the ranks now; if not, sees to the timer."""
    cdef int64_t until_ns
    if seen == TOKEN_RESUMED:
        return True
    if seen == TOKEN_SUSPENDED:
        until_ns = suspended_until_ns(vector)
        if now_ns >= until_ns:
            return True
        suspension_watch(timers, vector, number, until_ns)
    elif timer_has_expired(timers, number, now_ns):
        suspension_unwatch(timers, vector, number)
        full_fence()  # T1'
        if load_relaxed_u32(&vector.token) == TOKEN_SUSPENDED:
            suspension_watch(timers, vector, number, suspended_until_ns(vector))
    return False
