"""Data on their way between a rank's memory and its view of a file."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.file cimport File
from shrimpmx.mpi.abi cimport MPI_Datatype

cdef struct Access:          # what a call asks for
    File *file
    bint writes
    void *data
    Datatype *type
    int64_t count            # of its elements
    int64_t bytes            # of these in the file
    int64_t position         # bytes of the view in front of them

# Fills all but the position: a code.
cdef int access_check(Access *access, File *file, bint writes, void *data, int64_t count,
                      MPI_Datatype datatype) noexcept nogil
# Does it, all ranks together or this one alone: a code. `moved`: bytes of memory. With an error in
# `code` the others' accesses are done all the same.
cdef int access_do(Access *access, bint together, int code, int64_t *moved) noexcept nogil

# Bytes at a place in the file; those that were moved, fewer at the end of the file or on an error:
# the system's error number.
cdef int move_bytes(const File *file, uint8_t *data, int64_t place, int64_t bytes, bint writes,
                    int64_t *moved) noexcept nogil
# Bytes of the view from that position.
cdef int move_in_view(const File *file, uint8_t *data, int64_t position, int64_t bytes, bint writes,
                      int64_t *moved) noexcept nogil
