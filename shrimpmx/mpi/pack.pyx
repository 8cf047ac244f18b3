"""Pack and unpack (MPI 3.1, 4.2), and the portable representation "external32" (13.5.2)."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, strcmp

from shrimpmx.mpi.abi cimport (
    MPI_Aint, MPI_Comm, MPI_Datatype, MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_TRUNCATE,
    MPI_ERR_TYPE, MPI_SUCCESS,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of
from shrimpmx.mpi.datatype cimport Datatype, datatype_for, datatype_walk, fits_in_message
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.external cimport external_bytes, external_read, external_write
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mx.types cimport MESSAGE_MAX_BYTES

# Where packed bytes are, and how many are left.
cdef struct Cursor:
    uint8_t *packed
    int64_t left


cdef void collect(void *context, const Datatype *type, uint8_t *data,
                  int64_t count) noexcept nogil:
    cdef Cursor *cursor = <Cursor *>context
    memcpy(cursor.packed, data, count * type.size)
    cursor.packed += count * type.size


cdef void spread(void *context, const Datatype *type, uint8_t *data,
                 int64_t count) noexcept nogil:
    cdef Cursor *cursor = <Cursor *>context
    cdef int64_t bytes = min(count * type.size, cursor.left)
    memcpy(data, cursor.packed, bytes)
    cursor.packed += bytes
    cursor.left -= bytes


cdef void pack(const Datatype *type, const void *data, int64_t count,
               uint8_t *packed) noexcept nogil:
    cdef Cursor cursor = Cursor(packed, 0)
    datatype_walk(type, <uint8_t *>data, count, False, collect, &cursor)


cdef void unpack(const Datatype *type, const uint8_t *packed, int64_t length, void *data,
                 int64_t count) noexcept nogil:
    cdef Cursor cursor = Cursor(<uint8_t *>packed, length)
    datatype_walk(type, <uint8_t *>data, count, False, spread, &cursor)


# -- external32 ------------------------------------------------------------------------

cdef void measure_external(void *context, const Datatype *type, uint8_t *data,
                           int64_t count) noexcept nogil:
    (<int64_t *>context)[0] += count * external_bytes(type)


cdef void collect_external(void *context, const Datatype *type, uint8_t *data,
                           int64_t count) noexcept nogil:
    cdef Cursor *cursor = <Cursor *>context
    external_write(type, data, count, cursor.packed)
    cursor.packed += count * external_bytes(type)


cdef void spread_external(void *context, const Datatype *type, uint8_t *data,
                          int64_t count) noexcept nogil:
    cdef Cursor *cursor = <Cursor *>context
    external_read(type, data, count, cursor.packed)
    cursor.packed += count * external_bytes(type)


cdef int64_t external_size(const Datatype *type, int64_t count) noexcept nogil:
    cdef int64_t bytes = 0
    datatype_walk(type, NULL, 1, True, measure_external, &bytes)
    return count * bytes


# -- calls -------------------------------------------------------------------------------

cdef int check(const Datatype *type, int64_t count, int64_t bytes, int64_t position,
               int64_t room) noexcept nogil:
    if type == NULL:
        return MPI_ERR_TYPE
    if count < 0 or (type.size > MESSAGE_MAX_BYTES and count > 0):
        return MPI_ERR_COUNT
    return MPI_SUCCESS if 0 <= position <= room - bytes else MPI_ERR_TRUNCATE


cdef int check_external(const char *representation) noexcept nogil:
    """The other ones of MPI are for files."""
    return MPI_SUCCESS if strcmp(representation, "external32") == 0 else MPI_ERR_ARG


cdef int pack_size(int count, MPI_Datatype handle, MPI_Comm comm_handle,
                   int *size) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef Comm *comm = comm_of(comm_handle)
    if comm == NULL or type == NULL or count < 0:
        return error_raise(comm, MPI_ERR_COMM if comm == NULL else MPI_ERR_TYPE if type == NULL
                           else MPI_ERR_COUNT)
    if not fits_in_message(type, count):
        return error_raise(comm, MPI_ERR_COUNT)
    size[0] = <int>(count * type.size)
    return MPI_SUCCESS


cdef int pack_call(const void *data, int count, MPI_Datatype handle, void *into, int room,
                   int *position, MPI_Comm comm_handle) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef Comm *comm = comm_of(comm_handle)
    cdef int64_t bytes = 0 if type == NULL else count * type.size
    cdef int code = MPI_ERR_COMM if comm == NULL else check(type, count, bytes, position[0], room)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    pack(type, data, count, <uint8_t *>into + position[0])
    position[0] += <int>bytes
    return MPI_SUCCESS


cdef int unpack_call(const void *data, int room, int *position, void *into, int count,
                     MPI_Datatype handle, MPI_Comm comm_handle) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef Comm *comm = comm_of(comm_handle)
    cdef int64_t bytes = 0 if type == NULL else count * type.size
    cdef int code = MPI_ERR_COMM if comm == NULL else check(type, count, bytes, position[0], room)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    unpack(type, <const uint8_t *>data + position[0], bytes, into, count)
    position[0] += <int>bytes
    return MPI_SUCCESS


cdef int pack_external_size(const char *representation, int count, MPI_Datatype handle,
                            MPI_Aint *size) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef int code = max(check_external(representation), check(type, count, 0, 0, 0))
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    size[0] = external_size(type, count)
    return MPI_SUCCESS


cdef int pack_external(const char *representation, const void *data, int count,
                       MPI_Datatype handle, void *into, MPI_Aint room,
                       MPI_Aint *position) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef int64_t bytes = 0 if type == NULL else external_size(type, count)
    cdef Cursor cursor = Cursor(<uint8_t *>into + position[0], 0)
    cdef int code = max(check_external(representation),
                        check(type, count, bytes, position[0], room))
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    datatype_walk(type, <uint8_t *>data, count, True, collect_external, &cursor)
    position[0] += bytes
    return MPI_SUCCESS


cdef int unpack_external(const char *representation, const void *data, MPI_Aint room,
                         MPI_Aint *position, void *into, int count,
                         MPI_Datatype handle) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef int64_t bytes = 0 if type == NULL else external_size(type, count)
    cdef Cursor cursor = Cursor(<uint8_t *>data + position[0], 0)
    cdef int code = max(check_external(representation),
                        check(type, count, bytes, position[0], room))
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    datatype_walk(type, <uint8_t *>into, count, True, spread_external, &cursor)
    position[0] += bytes
    return MPI_SUCCESS


cdef void pack_fill(mpi_table *table) noexcept nogil:
    table.Pack = pack_call
    table.Unpack = unpack_call
    table.Pack_size = pack_size
    table.Pack_external = pack_external
    table.Unpack_external = unpack_external
    table.Pack_external_size = pack_external_size
