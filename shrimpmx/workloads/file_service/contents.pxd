"""What is in a file block."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef class Contents:
    cdef readonly uint64_t block_bytes
    cdef uint8_t[::1] noise

    cdef const uint8_t *place(self, uint64_t block, uint64_t version) noexcept nogil
    cdef int check_length(self, int64_t length) except -1
