"""Collective accesses, in which some ranks write and read for all."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.file cimport File

# All ranks call it: bytes of this rank's view from that position, and how many were moved: a code.
cdef int move_together(File *file, uint8_t *data, int64_t position, int64_t bytes, bint writes,
                       int64_t *moved) noexcept nogil
