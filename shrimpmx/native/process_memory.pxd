"""Copies between the memories of two processes, without shared memory."""

from libc.stdint cimport uint64_t

cdef enum:
    MEMORY_GONE = -1   # there is no such process
    MEMORY_BAD = -2    # part of the remote range is not mapped, or not for that; or it is forbidden
    MEMORY_OWN = -3    # the fault is the local range's

# Both return 0 when all of `length` bytes went over, else one of these.
cdef int process_read(int pid, uint64_t remote, void *local, uint64_t length) noexcept nogil
cdef int process_write(int pid, uint64_t remote, const void *local,
                       uint64_t length) noexcept nogil
