"""Data of a message that do not lie side by side: they travel in one piece (MPI 3.1, 4.1)."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.datatype cimport Datatype

# The bytes that a message leaves from or comes to.
cdef struct Staged:
    uint8_t *start
    uint8_t *packed          # from malloc; NULL: they are the user's own
    Datatype *type           # of a receive that will be unpacked; else NULL
    void *data
    int64_t count

# The same for data with gaps: False without memory.
cdef bint stage_packed(Staged *staged, const Datatype *type, const void *data,
                       int64_t count) noexcept nogil
cdef bint stage_unpacked(Staged *staged, Datatype *type, void *data, int64_t count) noexcept nogil
cdef void staged_free(Staged *staged, int64_t received) noexcept nogil


cdef inline bint stage_send(Staged *staged, const Datatype *type, const void *data,
                            int64_t count) noexcept nogil:
    """False without memory."""
    if not type.dense:
        return stage_packed(staged, type, data, count)
    staged.start = <uint8_t *>data + type.true_lower
    staged.packed = NULL
    return True


cdef inline bint stage_receive(Staged *staged, Datatype *type, void *data,
                               int64_t count) noexcept nogil:
    """False without memory."""
    if not type.dense:
        return stage_unpacked(staged, type, data, count)
    staged.start = <uint8_t *>data + type.true_lower
    staged.packed = NULL
    return True


cdef inline void staged_end(Staged *staged, int64_t received) noexcept nogil:
    """The message is over: `received` bytes go where the user wants them."""
    if staged.packed != NULL:
        staged_free(staged, received)
