"""Interrupts that are off, and the timers of the polls meanwhile."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.atomics cimport (
    full_fence, load_relaxed_u32, load_relaxed_u64, store_relaxed_u32,
)
from shrimpmx.shared.layout cimport (
    NODE_VECTORS_MAX, TOKEN_RESUMED, TOKEN_SUSPENDED, interrupt_vector,
)

# -- Timers of polls that no interrupt begins: one per vector, of one irq agent.

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


# -- Deferral of interrupts: polls by timer before they are on again.
#
# A handler that has emptied a ring leaves interrupts off and polls again after a timeout, until so
# many polls in a row have found nothing (Linux: napi_defer_hard_irqs, gro_flush_timeout).

cdef struct interrupt_deferral:
    uint32_t polls                          # that must find nothing; 0: nothing is deferred
    int64_t timeout_ns                      # between two of them
    uint32_t[NODE_VECTORS_MAX] left         # of each vector: polls that may yet find nothing


cdef inline void deferral_renew(interrupt_deferral *deferral, uint32_t number) noexcept nogil:
    deferral.left[number] = deferral.polls


cdef inline bint deferral_goes_on(interrupt_deferral *deferral, uint32_t number,
                                  uint32_t polled) noexcept nogil:
    """Whether interrupts stay off after a poll of `polled` frames; counts one that found none."""
    if deferral.polls == 0:
        return False
    if polled != 0:
        deferral_renew(deferral, number)
    if deferral.left[number] == 0:
        return False
    deferral.left[number] -= 1
    return True


# -- Suspension of interrupts: ranks poll, and the irq agent of `timer_core` keeps the time.
#
# While its looks find frames a rank leaves the token SUSPENDED, with a time until when. The agent
# of the vector's timer core goes on when that time is over, or at once when the rank hands the
# token on. Of the token, `watched` and the fences T1 and T1' see token.pxd.

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
