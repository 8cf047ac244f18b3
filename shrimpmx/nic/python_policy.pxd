"""Adapter from the firmware to a coalescing policy written in Python."""

from shrimpmx.nic.coalescing cimport Cause, CoalescingPolicy


cdef class PythonPolicy(CoalescingPolicy):
    cdef readonly object policy

    cdef Cause cause_of(self, object answer, Cause plain) except *
    cdef int read_deadline(self) except -1
    cdef void fail(self, object error) noexcept
