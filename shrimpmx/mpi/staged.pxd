"""Data of a message on their way: a record of its own, since windows and errors know each other."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.datatype cimport Datatype

# The bytes that a message leaves from or comes to.
cdef struct Staged:
    uint8_t *start
    uint8_t *packed          # from malloc; NULL: they are the user's own
    Datatype *type           # of a receive that will be unpacked; else NULL
    void *data
    int64_t count
    int64_t before           # bytes at `packed` that came with messages before this one
