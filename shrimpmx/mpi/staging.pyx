"""Packing into memory of its own, and back."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

from shrimpmx.mpi.datatype cimport Datatype, datatype_drop, datatype_keep
from shrimpmx.mpi.pack cimport pack, unpack


cdef bint stage_packed(Staged *staged, const Datatype *type, const void *data,
                       int64_t count) noexcept nogil:
    staged.packed = <uint8_t *>malloc(count * type.size + 1)
    staged.start = staged.packed
    staged.type = NULL
    if staged.packed == NULL:
        return False
    pack(type, data, count, staged.packed)
    return True


cdef bint stage_unpacked(Staged *staged, Datatype *type, void *data, int64_t count) noexcept nogil:
    staged.packed = <uint8_t *>malloc(count * type.size + 1)
    staged.start = staged.packed
    if staged.packed == NULL:
        return False
    datatype_keep(type)
    staged.type = type
    staged.data = data
    staged.count = count
    return True


cdef void staged_free(Staged *staged, int64_t received) noexcept nogil:
    if staged.type != NULL:
        unpack(staged.type, staged.packed, received, staged.data, staged.count)
        datatype_drop(staged.type)
    free(staged.packed)
    staged.packed = NULL
