"""The Toeplitz hash of a flow, as receive side scaling has it."""

from libc.stdint cimport uint8_t, uint32_t


cdef enum:
    TOEPLITZ_BYTES = 12          # two IPv4 addresses and two ports


cdef class Toeplitz:
    cdef uint32_t tables[TOEPLITZ_BYTES][256]   # what a byte at each place adds to the hash

    # Of the first `count` bytes, at most TOEPLITZ_BYTES.
    cdef uint32_t hash(self, const uint8_t *flow, uint32_t count) noexcept nogil
