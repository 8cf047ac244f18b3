"""Adapter from the firmware to a coalescing policy written in Python."""

from libc.stdint cimport int64_t

from shrimpmx.nic.coalescing cimport Cause, CoalescingPolicy


cdef class PythonPolicy(CoalescingPolicy):
    cdef readonly object policy
    cdef double dilation

    cdef int64_t emulated_ns(self, int64_t now_ns) noexcept nogil
    cdef Cause cause_of(self, object answer, Cause plain, str method) except *
    cdef int read_deadline(self) except -1
    cdef void fail(self, object error) noexcept
