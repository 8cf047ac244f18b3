"""Parts of arrays as datatypes: subarrays (MPI 3.1, 4.1.3) and distributed arrays (4.1.4).

Both are a type for each dimension, made of that of the next faster one, with the extent of all of
the dimension.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from shrimpmx.mpi.abi cimport (
    MPI_COMBINER_DARRAY, MPI_COMBINER_SUBARRAY, MPI_Datatype, MPI_DISTRIBUTE_BLOCK,
    MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_NONE, MPI_ERR_ARG,
    MPI_ERR_TYPE, MPI_ORDER_C, MPI_ORDER_FORTRAN,
)
from shrimpmx.mpi.datatype cimport (
    Block, Datatype, datatype_drop, datatype_finish, datatype_keep, datatype_new, datatype_of,
)
from shrimpmx.mpi.datatype_make cimport give, set_bounds
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table

# A part of a dimension of `all` elements: `repeat` groups of `length` elements, the first one at
# `start`, the next ones `stride` elements further; and `rest` elements behind them.
cdef struct Part:
    int64_t all
    int64_t start
    int64_t length
    int64_t repeat
    int64_t stride
    int64_t rest


cdef Datatype *dimension(const Part *part, Datatype *old, int64_t extent) noexcept nogil:
    """Takes a use of `old` away, of which an element has `extent` bytes here; NULL: no memory."""
    cdef Datatype *type = datatype_new(0, 0, 0, 0, 2)
    cdef int64_t bytes = extent
    if type != NULL:
        type.blocks[0] = Block(part.start * bytes, part.length, part.repeat, part.stride * bytes,
                               old)
        type.blocks[1] = Block((part.start + part.repeat * part.stride) * bytes, part.rest, 1, 0,
                               old)
        datatype_finish(type)
        set_bounds(type, 0, part.all * bytes)
    datatype_drop(old)
    return type


cdef Datatype *nest(const Part *parts, int count, bint last_is_fastest,
                    Datatype *old) noexcept nogil:
    """A type of all dimensions, without the arguments of the call; NULL: no memory."""
    cdef Datatype *type = old
    cdef int turn
    cdef int64_t extent = old.extent
    datatype_keep(old)
    for turn in range(count):
        if type != NULL:
            type = dimension(&parts[count - 1 - turn if last_is_fastest else turn], type, extent)
        if type != NULL:
            extent = type.extent
    return type


cdef int give_array(int combiner, const Part *parts, int count, int order, Datatype *old,
                    const int *head, int head_count, const int *const *lists, int lists_count,
                    MPI_Datatype *made) noexcept nogil:
    """The integers of the call: `head`, then `lists` of `count` each, then the order."""
    cdef Datatype *nested = nest(parts, count, order == MPI_ORDER_C, old)
    cdef Datatype *type = NULL
    cdef int index
    if nested != NULL:
        type = datatype_new(combiner, head_count + lists_count * count + 1, 0, 1, 1)
        if type != NULL:
            memcpy(type.integers, head, head_count * sizeof(int))
            for index in range(lists_count):
                memcpy(&type.integers[head_count + index * count], lists[index],
                       count * sizeof(int))
            type.integers[head_count + lists_count * count] = order
            type.types[0] = old
            type.blocks[0] = Block(0, 1, 1, 0, nested)
            datatype_finish(type)
        datatype_drop(nested)
    return give(type, made)


cdef enum:
    DIMENSIONS = 64          # more than numpy has


cdef bint fits(int dimensions, int order) noexcept nogil:
    return 0 < dimensions <= DIMENSIONS and order in (MPI_ORDER_C, MPI_ORDER_FORTRAN)


cdef int subarray(int dimensions, const int *sizes, const int *subsizes, const int *starts,
                  int order, MPI_Datatype handle, MPI_Datatype *made) noexcept nogil:
    cdef Part parts[DIMENSIONS]
    cdef const int *lists[3]
    cdef Datatype *old = datatype_of(handle)
    cdef int index
    if old == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if not fits(dimensions, order):
        return error_raise(NULL, MPI_ERR_ARG)
    for index in range(dimensions):
        if subsizes[index] < 1 or not 0 <= starts[index] <= sizes[index] - subsizes[index]:
            return error_raise(NULL, MPI_ERR_ARG)
        parts[index] = Part(sizes[index], starts[index], subsizes[index], 1, 0, 0)
    lists[0] = sizes
    lists[1] = subsizes
    lists[2] = starts
    return give_array(MPI_COMBINER_SUBARRAY, parts, dimensions, order, old, &dimensions, 1, lists,
                      3, made)


cdef bint distribute(Part *part, int all, int how, int argument, int processes,
                     int place) noexcept nogil:
    """The part that the process at `place` has of a dimension; False: it cannot be."""
    cdef int64_t length = argument, turn, groups
    if all < 1 or processes < 1 or (how == MPI_DISTRIBUTE_NONE and processes > 1):
        return False
    if how == MPI_DISTRIBUTE_NONE:
        length = all
    elif how == MPI_DISTRIBUTE_BLOCK:
        if argument == MPI_DISTRIBUTE_DFLT_DARG:
            length = (all + processes - 1) // processes
        if length * processes < all:
            return False
    elif how != MPI_DISTRIBUTE_CYCLIC:
        return False
    elif argument == MPI_DISTRIBUTE_DFLT_DARG:
        length = 1
    if length < 1:
        return False
    # It has groups of `length`, each a turn of all processes after the one before.
    turn = length * processes
    groups = max(0, (all - place * length + turn - length) // turn)
    part[0] = Part(all, place * length, length, groups, turn, 0)
    part.rest = min(length, max(0, all - place * length - groups * turn))
    return True


cdef int darray(int size, int rank, int dimensions, const int *all, const int *how,
                const int *arguments, const int *processes, int order, MPI_Datatype handle,
                MPI_Datatype *made) noexcept nogil:
    """The grid of processes has the order of C, whatever that of the array is (4.1.4)."""
    cdef Part parts[DIMENSIONS]
    cdef const int *lists[4]
    cdef int head[3]
    cdef Datatype *old = datatype_of(handle)
    cdef int index, place = rank
    cdef int64_t grid = 1
    if old == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if not fits(dimensions, order) or not 0 <= rank < size:
        return error_raise(NULL, MPI_ERR_ARG)
    for index in range(dimensions - 1, -1, -1):
        if processes[index] < 1 or not distribute(&parts[index], all[index], how[index],
                                                  arguments[index], processes[index],
                                                  place % processes[index]):
            return error_raise(NULL, MPI_ERR_ARG)
        place //= processes[index]
        grid *= processes[index]
    if grid != size:
        return error_raise(NULL, MPI_ERR_ARG)
    head[0] = size
    head[1] = rank
    head[2] = dimensions
    lists[0] = all
    lists[1] = how
    lists[2] = arguments
    lists[3] = processes
    return give_array(MPI_COMBINER_DARRAY, parts, dimensions, order, old, head, 3, lists, 4, made)


cdef void datatype_array_fill(mpi_table *table) noexcept nogil:
    table.Type_create_subarray = subarray
    table.Type_create_darray = darray
