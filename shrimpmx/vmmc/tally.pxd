"""A counter of a process, for layers that are written in Python."""

from libc.stdint cimport uint64_t

from shrimpmx.vmmc.process cimport VmmcProcess


cdef class Tally:
    cdef VmmcProcess process  # keeps the counter in place
    cdef uint64_t *counter
