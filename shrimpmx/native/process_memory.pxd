"""Copies between the memories of two processes, without shared memory."""

from libc.stdint cimport uint64_t

# Both return 0 when all of `length` bytes went over, -1 if any did not: the process is gone, part
# of the remote range is not mapped, or the system forbids it.
cdef int process_read(int pid, uint64_t remote, void *local, uint64_t length) noexcept nogil
cdef int process_write(int pid, uint64_t remote, const void *local,
                       uint64_t length) noexcept nogil
