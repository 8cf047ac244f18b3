"""Data in one piece: pack and unpack (MPI 3.1, 4.2), "external32" (13.5.2), messages with gaps."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset, strcmp

from shrimpmx.mpi.abi cimport (
    MPI_ERR_ARG, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_TRUNCATE, MPI_ERR_TYPE,
    MPI_SUCCESS, MPI_Comm, MPI_Count, MPI_Datatype,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of
from shrimpmx.mpi.datatype cimport (
    Datatype, bytes_fit, data_missing, datatype_drop, datatype_for, datatype_keep, datatype_walk,
    is_nowhere,
)
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.native.copy cimport copy_bytes


# Where packed bytes are, how many are left, and how many of memory they have filled.
cdef struct Cursor:
    uint8_t *packed
    int64_t left
    int64_t filled


cdef void collect(void *context, const Datatype *type, uint8_t *data,
                  int64_t count) noexcept nogil:
    cdef Cursor *cursor = <Cursor *>context
    copy_bytes(cursor.packed, data, count * type.size)
    cursor.packed += count * type.size


cdef void spread(void *context, const Datatype *type, uint8_t *data,
                 int64_t count) noexcept nogil:
    cdef Cursor *cursor = <Cursor *>context
    cdef int64_t bytes = min(count * type.size, cursor.left)
    copy_bytes(data, cursor.packed, bytes)
    cursor.packed += bytes
    cursor.left -= bytes


cdef void pack(const Datatype *type, const void *data, int64_t count,
               uint8_t *packed) noexcept nogil:
    cdef Cursor cursor = Cursor(packed, 0, 0)
    datatype_walk(type, <uint8_t *>data, count, False, collect, &cursor)


cdef void unpack(const Datatype *type, const uint8_t *packed, int64_t length, void *data,
                 int64_t count) noexcept nogil:
    cdef Cursor cursor = Cursor(<uint8_t *>packed, length, 0)
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
    cdef int64_t bytes = external_bytes(type)
    count = min(count, cursor.left // bytes)
    external_read(type, data, count, cursor.packed)
    cursor.packed += count * bytes
    cursor.left -= count * bytes
    cursor.filled += count * type.size


cdef int64_t external_size(const Datatype *type, int64_t count) noexcept nogil:
    cdef int64_t bytes = 0
    datatype_walk(type, NULL, 1, True, measure_external, &bytes)
    return count * bytes


cdef void external_pack(const Datatype *type, const void *data, int64_t count,
                        uint8_t *packed) noexcept nogil:
    cdef Cursor cursor = Cursor(packed, 0, 0)
    datatype_walk(type, <uint8_t *>data, count, True, collect_external, &cursor)


cdef int64_t external_unpack(const Datatype *type, const uint8_t *packed, int64_t length,
                             void *data, int64_t count) noexcept nogil:
    cdef Cursor cursor = Cursor(<uint8_t *>packed, length, 0)
    datatype_walk(type, <uint8_t *>data, count, True, spread_external, &cursor)
    return cursor.filled


# -- calls -------------------------------------------------------------------------------

cdef int check_type(const Datatype *type, int64_t count) noexcept nogil:
    if type == NULL:
        return MPI_ERR_TYPE
    return MPI_SUCCESS if bytes_fit(type.size, count) else MPI_ERR_COUNT


cdef int check(const Datatype *type, int64_t count, const void *data, int64_t bytes,
               int64_t position, int64_t room, const void *packed) noexcept nogil:
    cdef int code = check_type(type, count)
    if code != MPI_SUCCESS:
        return code
    if data_missing(data, type, count) or (is_nowhere(packed) and bytes > 0):
        return MPI_ERR_BUFFER
    return MPI_SUCCESS if 0 <= position <= room - bytes else MPI_ERR_TRUNCATE


cdef int check_external(const char *representation) noexcept nogil:
    """The other ones of MPI are for files."""
    return MPI_SUCCESS if strcmp(representation, "external32") == 0 else MPI_ERR_ARG


cdef int pack_size(MPI_Count count, MPI_Datatype handle, MPI_Comm comm_handle,
                   MPI_Count *size) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef Comm *comm = comm_of(comm_handle)
    cdef int code = MPI_ERR_COMM if comm == NULL else check_type(type, count)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    size[0] = count * type.size
    return MPI_SUCCESS


cdef int pack_call(const void *data, MPI_Count count, MPI_Datatype handle, void *into,
                   MPI_Count room, MPI_Count *position, MPI_Comm comm_handle) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef Comm *comm = comm_of(comm_handle)
    cdef int64_t bytes = 0 if type == NULL else count * type.size
    cdef int code = MPI_ERR_COMM if comm == NULL else check(type, count, data, bytes, position[0],
                                                            room, into)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    pack(type, data, count, <uint8_t *>into + position[0])
    position[0] += bytes
    return MPI_SUCCESS


cdef int unpack_call(const void *data, MPI_Count room, MPI_Count *position, void *into,
                     MPI_Count count, MPI_Datatype handle, MPI_Comm comm_handle) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef Comm *comm = comm_of(comm_handle)
    cdef int64_t bytes = 0 if type == NULL else count * type.size
    cdef int code = MPI_ERR_COMM if comm == NULL else check(type, count, into, bytes, position[0],
                                                            room, data)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    unpack(type, <const uint8_t *>data + position[0], bytes, into, count)
    position[0] += bytes
    return MPI_SUCCESS


cdef int pack_external_size(const char *representation, MPI_Count count, MPI_Datatype handle,
                            MPI_Count *size) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef int code = max(check_external(representation), check_type(type, count))
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    size[0] = external_size(type, count)
    return MPI_SUCCESS


cdef int pack_external(const char *representation, const void *data, MPI_Count count,
                       MPI_Datatype handle, void *into, MPI_Count room,
                       MPI_Count *position) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef int64_t bytes = 0 if type == NULL else external_size(type, count)
    cdef int code = max(check_external(representation),
                        check(type, count, data, bytes, position[0], room, into))
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    external_pack(type, data, count, <uint8_t *>into + position[0])
    position[0] += bytes
    return MPI_SUCCESS


cdef int unpack_external(const char *representation, const void *data, MPI_Count room,
                         MPI_Count *position, void *into, MPI_Count count,
                         MPI_Datatype handle) noexcept nogil:
    cdef const Datatype *type = datatype_for(handle, count)
    cdef int64_t bytes = 0 if type == NULL else external_size(type, count)
    cdef int code = max(check_external(representation),
                        check(type, count, into, bytes, position[0], room, data))
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    external_unpack(type, <uint8_t *>data + position[0], bytes, into, count)
    position[0] += bytes
    return MPI_SUCCESS


cdef void pack_fill(mpi_table *table) noexcept nogil:
    table.Pack = pack_call
    table.Unpack = unpack_call
    table.Pack_size = pack_size
    table.Pack_external = pack_external
    table.Unpack_external = unpack_external
    table.Pack_external_size = pack_external_size


# -- Basic types to and from "external32".
#
# A value of `alignment` bytes becomes one of as many in the other order; those of another size
# there are long (4 bytes), wide characters (2), and long double, which has 16 bytes as quadruple
# precision.

cdef extern from "<float.h>" nogil:
    int LDBL_MANT_DIG

cdef enum:                   # numbers of built-in types
    WCHAR = 0x0E
    LONG = 0x07
    UNSIGNED_LONG = 0x08
    # Long double, and the complex numbers of C and of C++ that have it.
    LONG_DOUBLE = 0x0C
    LONG_DOUBLE_COMPLEX = 0x42
    CXX_LONG_DOUBLE_COMPLEX = 0x36
    # The 80-bit format: 64 bits with the leading one, 112 without it in quadruple precision.
    EXTENDED_DIGITS = 64


cdef int64_t value_bytes(const Datatype *type) noexcept nogil:
    """Of one value of an element there."""
    cdef int number = type.handle & 0xFF
    if number == WCHAR:
        return 2
    return 4 if number in (LONG, UNSIGNED_LONG) else type.alignment


cdef bint is_extended(const Datatype *type) noexcept nogil:
    return (LDBL_MANT_DIG == EXTENDED_DIGITS
            and type.handle & 0xFF in (LONG_DOUBLE, LONG_DOUBLE_COMPLEX, CXX_LONG_DOUBLE_COMPLEX))


cdef int64_t external_bytes(const Datatype *type) noexcept nogil:
    return type.size // type.alignment * value_bytes(type)


cdef void external_write(const Datatype *type, const uint8_t *data, int64_t count,
                         uint8_t *packed) noexcept nogil:
    cdef int64_t _index, byte, bytes = value_bytes(type)
    for _index in range(count * (type.size // type.alignment)):
        if is_extended(type):
            write_extended(data, packed)
        else:
            for byte in range(bytes):
                packed[bytes - 1 - byte] = data[byte]
        data += type.alignment
        packed += bytes


cdef void external_read(const Datatype *type, uint8_t *data, int64_t count,
                        const uint8_t *packed) noexcept nogil:
    cdef int64_t _index, byte, bytes = value_bytes(type)
    for _index in range(count * (type.size // type.alignment)):
        if is_extended(type):
            read_extended(data, packed)
        else:
            for byte in range(bytes):
                data[byte] = packed[bytes - 1 - byte]
            if bytes < type.alignment:
                memset(data + bytes, 0xFF if type.handle & 0xFF == LONG and packed[0] & 0x80
                       else 0, type.alignment - bytes)
        data += type.alignment
        packed += bytes


cdef void write_extended(const uint8_t *data, uint8_t *packed) noexcept nogil:
    """Sign and exponent are the same, with the same bias; of the fraction the leading one goes."""
    cdef uint64_t fraction
    cdef int byte
    memcpy(&fraction, data, sizeof(fraction))
    memset(packed, 0, 16)
    packed[0] = data[9]
    packed[1] = data[8]
    # 63 bits, from the highest of 112.
    fraction <<= 1
    for byte in range(8):
        packed[2 + byte] = <uint8_t>(fraction >> 56)
        fraction <<= 8


cdef void read_extended(uint8_t *data, const uint8_t *packed) noexcept nogil:
    """What does not fit into 63 bits is cut."""
    cdef uint64_t fraction = 0
    cdef int byte
    for byte in range(8):
        fraction = fraction << 8 | packed[2 + byte]
    fraction >>= 1
    # Numbers that are not denormal have a leading one.
    if packed[0] & 0x7F or packed[1]:
        fraction |= <uint64_t>1 << 63
    memset(data, 0, sizeof(long double))
    memcpy(data, &fraction, sizeof(fraction))
    data[8] = packed[1]
    data[9] = packed[0]


# -- Packing into memory of its own, and back.

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
    staged.before = 0
    return True


cdef void staged_free(Staged *staged, int64_t received) noexcept nogil:
    if staged.type != NULL:
        unpack(staged.type, staged.packed, staged.before + received, staged.data, staged.count)
        datatype_drop(staged.type)
    free(staged.packed)
    staged.packed = NULL
