"""Data in one piece: as they are in memory, or in the representation "external32"."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.staged cimport Staged
from shrimpmx.mpi.table cimport mpi_table

# `count` elements at `data` into count * type.size bytes at `packed`.
cdef void pack(const Datatype *type, const void *data, int64_t count,
               uint8_t *packed) noexcept nogil
# At most `length` bytes at `packed` into `count` elements at `data`.
cdef void unpack(const Datatype *type, const uint8_t *packed, int64_t length, void *data,
                 int64_t count) noexcept nogil
# The same in "external32": bytes of `count` elements there, the way there, and the way back, which
# takes whole basic elements of `length` bytes and returns the bytes of memory that they fill.
cdef int64_t external_size(const Datatype *type, int64_t count) noexcept nogil
cdef void external_pack(const Datatype *type, const void *data, int64_t count,
                        uint8_t *packed) noexcept nogil
cdef int64_t external_unpack(const Datatype *type, const uint8_t *packed, int64_t length,
                             void *data, int64_t count) noexcept nogil
cdef void pack_fill(mpi_table *table) noexcept nogil


# -- The representation "external32" of basic types (MPI 3.1, 13.5.2): big-endian, IEEE 754.

# Bytes of an element there.
cdef int64_t external_bytes(const Datatype *type) noexcept nogil
cdef void external_write(const Datatype *type, const uint8_t *data, int64_t count,
                         uint8_t *packed) noexcept nogil
cdef void external_read(const Datatype *type, uint8_t *data, int64_t count,
                        const uint8_t *packed) noexcept nogil


# -- Data of a message that do not lie side by side: they travel in one piece (MPI 3.1, 4.1).

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
