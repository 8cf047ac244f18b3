"""The four coalescing strategies of the coalescing paper."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.nic.coalescing cimport Cause, CoalescingPolicy


cdef class Disabled(CoalescingPolicy):
    pass


cdef class TimedPolicy(CoalescingPolicy):
    cdef readonly int64_t delay_ns
    cdef readonly bint mark_resets_timer

    cdef void arm(self, int64_t now_ns) noexcept nogil


cdef class Timeout(TimedPolicy):
    cdef readonly uint32_t frames
    cdef uint32_t waiting


cdef class OpenMx(TimedPolicy):
    pass


cdef class Stream(TimedPolicy):
    cdef bint deferred
