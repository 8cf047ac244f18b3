"""Built-in datatypes. Derived ones are not there yet: their constructors are refused."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport (
    MPI_Aint, MPI_Count, MPI_Datatype, MPI_ERR_TYPE, MPI_SUCCESS, MPI_Status, MPI_UNDEFINED,
)
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table


cdef int pair_bytes(MPI_Datatype datatype) noexcept nogil:
    if <unsigned int>datatype == <unsigned int>PAIR_FLOAT:
        return sizeof(FloatPair)
    if <unsigned int>datatype == <unsigned int>PAIR_DOUBLE:
        return sizeof(DoublePair)
    if <unsigned int>datatype == <unsigned int>PAIR_LONG:
        return sizeof(LongPair)
    if <unsigned int>datatype == <unsigned int>PAIR_SHORT:
        return sizeof(ShortPair)
    if <unsigned int>datatype == <unsigned int>PAIR_LONG_DOUBLE:
        return sizeof(LongDoublePair)
    return TYPE_INVALID


cdef int64_t bytes_of_status(const MPI_Status *status) noexcept nogil:
    return <int64_t>(status.count_hi_and_cancelled >> 1) << 32 | <unsigned int>status.count_lo


cdef int get_count(const MPI_Status *status, MPI_Datatype datatype, int *count) noexcept nogil:
    cdef int bytes = datatype_bytes(datatype)
    cdef int64_t received = bytes_of_status(status)
    if bytes == TYPE_INVALID:
        return error_raise(NULL, MPI_ERR_TYPE)
    if bytes == 0:
        count[0] = 0
    elif received % bytes != 0 or received // bytes > 0x7FFFFFFF:
        count[0] = MPI_UNDEFINED
    else:
        count[0] = <int>(received // bytes)
    return MPI_SUCCESS


cdef int get_elements(const MPI_Status *status, MPI_Datatype datatype,
                      MPI_Count *count) noexcept nogil:
    cdef int whole = 0
    cdef int code = get_count(status, datatype, &whole)
    count[0] = whole
    return code


cdef int set_elements(MPI_Status *status, MPI_Datatype datatype,
                      MPI_Count count) noexcept nogil:
    cdef int bytes = datatype_bytes(datatype)
    if bytes == TYPE_INVALID:
        return error_raise(NULL, MPI_ERR_TYPE)
    count *= bytes
    status.count_lo = <int><unsigned int>count
    status.count_hi_and_cancelled = (
        <int>(count >> 32) << 1 | (status.count_hi_and_cancelled & 1))
    return MPI_SUCCESS


cdef int type_size(MPI_Datatype datatype, MPI_Count *size) noexcept nogil:
    """Without the room in a pair."""
    cdef int bytes = datatype_bytes(datatype)
    if bytes == TYPE_INVALID:
        return error_raise(NULL, MPI_ERR_TYPE)
    if <unsigned int>datatype == <unsigned int>PAIR_DOUBLE:
        bytes = sizeof(double) + sizeof(int)
    elif <unsigned int>datatype == <unsigned int>PAIR_LONG:
        bytes = sizeof(long) + sizeof(int)
    elif <unsigned int>datatype == <unsigned int>PAIR_SHORT:
        bytes = sizeof(short) + sizeof(int)
    elif <unsigned int>datatype == <unsigned int>PAIR_LONG_DOUBLE:
        bytes = sizeof(long double) + sizeof(int)
    size[0] = bytes
    return MPI_SUCCESS


cdef int get_extent(MPI_Datatype datatype, MPI_Aint *lower, MPI_Aint *extent) noexcept nogil:
    cdef int bytes = datatype_bytes(datatype)
    if bytes == TYPE_INVALID:
        return error_raise(NULL, MPI_ERR_TYPE)
    lower[0] = 0
    extent[0] = bytes
    return MPI_SUCCESS


cdef int get_extent_x(MPI_Datatype datatype, MPI_Count *lower, MPI_Count *extent) noexcept nogil:
    cdef MPI_Aint low = 0, far = 0
    cdef int code = get_extent(datatype, &low, &far)
    lower[0] = low
    extent[0] = far
    return code


cdef int get_address(const void *place, MPI_Aint *address) noexcept nogil:
    address[0] = <MPI_Aint>place
    return MPI_SUCCESS


cdef void datatype_fill(mpi_table *table) noexcept nogil:
    table.Get_count = get_count
    table.Get_elements_x = get_elements
    table.Status_set_elements_x = set_elements
    table.Type_size_x = type_size
    table.Type_get_extent = get_extent
    table.Type_get_true_extent = get_extent
    table.Type_get_extent_x = get_extent_x
    table.Type_get_true_extent_x = get_extent_x
    table.Get_address = get_address
