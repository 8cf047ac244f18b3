"""Data in one piece: as they are in memory, or in the representation "external32"."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.table cimport mpi_table

# `count` elements at `data` into count * type.size bytes at `packed`.
cdef void pack(const Datatype *type, const void *data, int64_t count,
               uint8_t *packed) noexcept nogil
# At most `length` bytes at `packed` into `count` elements at `data`.
cdef void unpack(const Datatype *type, const uint8_t *packed, int64_t length, void *data,
                 int64_t count) noexcept nogil
cdef void pack_fill(mpi_table *table) noexcept nogil
