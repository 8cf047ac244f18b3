"""The four coalescing strategies of the coalescing paper."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.nic.coalescing cimport Cause, CoalescingPolicy


cdef class Disabled(CoalescingPolicy):
    pass


cdef class TimedPolicy(CoalescingPolicy):
    cdef readonly int64_t delay_ns
    cdef readonly bint mark_resets_timer
    cdef readonly bint free_running
    cdef int64_t reset_ns            # when the timer was last reset, of one that runs freely

    cpdef int use_clock(self, double phase, double drift) except -1
    cdef void arm(self, int64_t now_ns) noexcept nogil
    cdef void reset_timer(self, int64_t now_ns, Cause cause) noexcept nogil


cdef class Timeout(TimedPolicy):
    cdef readonly uint32_t frames
    cdef uint32_t waiting


cdef class OpenMx(TimedPolicy):
    pass


cdef class Stream(TimedPolicy):
    cdef bint deferred
    cdef int64_t put_off_ns          # the first mark not reported; NEVER_NS: there is none

    cdef void measure_deferral(self, int64_t now_ns) noexcept nogil
