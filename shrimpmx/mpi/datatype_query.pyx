"""Sizes, bounds, names, envelopes and contents of datatypes, and elements of messages (MPI 3.1,
4.1.5 to 4.1.13)."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, strlen, strncpy

from shrimpmx.mpi.abi cimport (
    MPI_Aint, MPI_COMBINER_NAMED, MPI_Count, MPI_Datatype, MPI_DATATYPE_NULL, MPI_ERR_ARG,
    MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_MAX_OBJECT_NAME, MPI_Status, MPI_SUCCESS, MPI_UNDEFINED,
)
from shrimpmx.mpi.datatype cimport (
    Datatype, built_in, datatype_of, datatype_remember, datatype_walk,
)
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table

cdef enum:
    INT_MAX = 0x7FFFFFFF
    # MPI_TYPECLASS_REAL, _INTEGER and _COMPLEX
    CLASS_REAL = 1
    CLASS_INTEGER = 2
    CLASS_COMPLEX = 3

# Of a status.
cdef int64_t BYTES_MAX = 2 ** 63 - 1


# -- elements of a message -------------------------------------------------------------

cdef int64_t bytes_of_status(const MPI_Status *status) noexcept nogil:
    cdef uint64_t high = <uint32_t>status.count_hi_and_cancelled >> 1
    return <int64_t>(high << 32 | <uint32_t>status.count_lo)


cdef int get_count(const MPI_Status *status, MPI_Datatype handle, int *count) noexcept nogil:
    cdef const Datatype *type = datatype_of(handle)
    cdef int64_t received = bytes_of_status(status)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if type.size == 0:
        count[0] = 0 if received == 0 else MPI_UNDEFINED
    elif received % type.size != 0 or received // type.size > INT_MAX:
        count[0] = MPI_UNDEFINED
    else:
        count[0] = <int>(received // type.size)
    return MPI_SUCCESS


cdef struct Tally:
    int64_t bytes
    int64_t elements


cdef void tally(void *context, const Datatype *type, uint8_t *data, int64_t count) noexcept nogil:
    """Basic elements, which may have two values."""
    cdef Tally *sum = <Tally *>context
    cdef int64_t bytes = type.size // type.elements
    cdef int64_t there = min(count * type.elements, sum.bytes // bytes)
    sum.elements += there
    # Of an element that is cut the bytes stay, and nothing follows.
    sum.bytes -= there * bytes
    if there < count * type.elements and sum.bytes > 0:
        sum.elements = MPI_UNDEFINED
        sum.bytes = 0


cdef int get_elements(const MPI_Status *status, MPI_Datatype handle,
                      MPI_Count *count) noexcept nogil:
    cdef const Datatype *type = datatype_of(handle)
    cdef int64_t received = bytes_of_status(status)
    cdef Tally rest
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    count[0] = 0
    if type.size > 0:
        rest = Tally(received % type.size, 0)
        datatype_walk(type, NULL, 1, True, tally, &rest)
        count[0] = (MPI_UNDEFINED if rest.elements < 0
                    else received // type.size * type.elements + rest.elements)
    return MPI_SUCCESS


cdef void add_bytes(void *context, const Datatype *type, uint8_t *data,
                    int64_t count) noexcept nogil:
    """Of as many basic elements as are left."""
    cdef Tally *sum = <Tally *>context
    cdef int64_t there = min(count * type.elements, sum.elements)
    sum.elements -= there
    sum.bytes += there * (type.size // type.elements)


cdef int set_elements(MPI_Status *status, MPI_Datatype handle, MPI_Count count) noexcept nogil:
    """`count` basic elements, as get_elements counts them (12.3)."""
    cdef const Datatype *type = datatype_of(handle)
    cdef Tally rest
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if count < 0:
        return error_raise(NULL, MPI_ERR_COUNT)
    if type.elements > 0:
        rest = Tally(0, count % type.elements)
        datatype_walk(type, NULL, 1, True, add_bytes, &rest)
        if type.size > 0 and count // type.elements > (BYTES_MAX - rest.bytes) // type.size:
            return error_raise(NULL, MPI_ERR_COUNT)
        count = count // type.elements * type.size + rest.bytes
    status.count_lo = <int><uint32_t>count
    status.count_hi_and_cancelled = <int>(
        <uint32_t>(count >> 32) << 1 | (status.count_hi_and_cancelled & 1))
    return MPI_SUCCESS


# -- sizes and bounds --------------------------------------------------------------------

cdef int type_size(MPI_Datatype handle, MPI_Count *size) noexcept nogil:
    cdef const Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    size[0] = type.size
    return MPI_SUCCESS


cdef int get_extent(MPI_Datatype handle, MPI_Aint *lower, MPI_Aint *extent) noexcept nogil:
    cdef const Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    lower[0] = type.lower
    extent[0] = type.extent
    return MPI_SUCCESS


cdef int get_true_extent(MPI_Datatype handle, MPI_Aint *lower, MPI_Aint *extent) noexcept nogil:
    cdef const Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    lower[0] = type.true_lower
    extent[0] = type.true_extent
    return MPI_SUCCESS


# An MPI_Count has the size of an MPI_Aint.
cdef int get_extent_x(MPI_Datatype handle, MPI_Count *lower, MPI_Count *extent) noexcept nogil:
    return get_extent(handle, <MPI_Aint *>lower, <MPI_Aint *>extent)


cdef int get_true_extent_x(MPI_Datatype handle, MPI_Count *lower,
                           MPI_Count *extent) noexcept nogil:
    return get_true_extent(handle, <MPI_Aint *>lower, <MPI_Aint *>extent)


cdef int get_address(const void *place, MPI_Aint *address) noexcept nogil:
    address[0] = <MPI_Aint>place
    return MPI_SUCCESS


# -- names ---------------------------------------------------------------------------------

cdef int get_name(MPI_Datatype handle, char *name, int *length) noexcept nogil:
    cdef Datatype *type = datatype_of(handle)
    cdef const char *text = b"MPI_DATATYPE_NULL"
    if type == NULL and handle != MPI_DATATYPE_NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if type != NULL:
        text = type.name
    length[0] = <int>strlen(text)
    memcpy(name, text, length[0] + 1)
    return MPI_SUCCESS


cdef int set_name(MPI_Datatype handle, const char *name) noexcept nogil:
    cdef Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    # A longer one is cut (MPI 3.1, 6.8).
    strncpy(type.name, name, MPI_MAX_OBJECT_NAME - 1)
    return MPI_SUCCESS


# -- what it is made of ----------------------------------------------------------------------

cdef int get_envelope(MPI_Datatype handle, int *integers, int *addresses, int *types,
                      int *combiner) noexcept nogil:
    cdef const Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    integers[0] = type.integers_count
    addresses[0] = type.addresses_count
    types[0] = type.types_count
    combiner[0] = type.combiner
    return MPI_SUCCESS


cdef int get_contents(MPI_Datatype handle, int most_integers, int most_addresses, int most_types,
                      int *integers, MPI_Aint *addresses, MPI_Datatype *handles) noexcept nogil:
    """The user gets a handle of each type that is not built in, to be freed."""
    cdef Datatype *type = datatype_of(handle)
    cdef int index
    if type == NULL or type.combiner == MPI_COMBINER_NAMED:
        return error_raise(NULL, MPI_ERR_TYPE)
    if (most_integers < type.integers_count or most_addresses < type.addresses_count
            or most_types < type.types_count):
        return error_raise(NULL, MPI_ERR_ARG)
    memcpy(integers, type.integers, type.integers_count * sizeof(int))
    memcpy(addresses, type.addresses, type.addresses_count * sizeof(MPI_Aint))
    for index in range(type.types_count):
        handles[index] = type.types[index].handle
        if type.types[index].combiner != MPI_COMBINER_NAMED:
            datatype_remember(type.types[index], &type.types[index].handles)
    return MPI_SUCCESS


cdef int match_size(int kind, int size, MPI_Datatype *found) noexcept nogil:
    """Fortran's datatype of that size (17.2.5)."""
    cdef int number
    if kind == CLASS_REAL:
        number = 0x27 if size == 4 else 0x29 if size == 8 else 0x2B
    elif kind == CLASS_INTEGER:
        number = 0x2D if size == 1 else 0x2F if size == 2 else 0x30 if size == 4 else 0x31
    else:
        number = 0x28 if size == 8 else 0x2A if size == 16 else 0x2C
    if not CLASS_REAL <= kind <= CLASS_COMPLEX or built_in[number].size != size:
        return error_raise(NULL, MPI_ERR_ARG)
    found[0] = built_in[number].handle
    return MPI_SUCCESS


cdef void datatype_query_fill(mpi_table *table) noexcept nogil:
    table.Get_count = get_count
    table.Get_elements_x = get_elements
    table.Status_set_elements_x = set_elements
    table.Type_size_x = type_size
    table.Type_get_extent = get_extent
    table.Type_get_extent_x = get_extent_x
    table.Type_get_true_extent = get_true_extent
    table.Type_get_true_extent_x = get_true_extent_x
    table.Type_get_name = get_name
    table.Type_set_name = set_name
    table.Type_get_envelope = get_envelope
    table.Type_get_contents = get_contents
    table.Type_match_size = match_size
    table.Get_address = get_address
