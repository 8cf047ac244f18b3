"""The representation "external32" of basic types (MPI 3.1, 13.5.2): big-endian, IEEE 754."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.datatype cimport Datatype

# Bytes of an element there.
cdef int64_t external_bytes(const Datatype *type) noexcept nogil
cdef void external_write(const Datatype *type, const uint8_t *data, int64_t count,
                         uint8_t *packed) noexcept nogil
cdef void external_read(const Datatype *type, uint8_t *data, int64_t count,
                        const uint8_t *packed) noexcept nogil
