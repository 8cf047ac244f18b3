"""What a run lasts until: conditions that a world asks after each turn of a task."""

from libc.stdint cimport uint32_t


cdef class Tally:
    cdef public uint32_t left
    cdef object look
    cdef uint32_t turns

    # Whether all are there.
    cdef bint is_full(self) except -1
