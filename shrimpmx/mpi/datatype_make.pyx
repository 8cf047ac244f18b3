"""Datatypes made of older ones: blocks (MPI 3.1, 4.1.2), parts of arrays (4.1.3, 4.1.4); commit.

Every constructor keeps its arguments as MPI_Type_get_contents returns them (4.1.13).
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t
from libc.stdlib cimport realloc

from shrimpmx.mpi.abi cimport (
    MPI_COMBINER_CONTIGUOUS, MPI_COMBINER_DARRAY, MPI_COMBINER_DUP, MPI_COMBINER_F90_COMPLEX,
    MPI_COMBINER_F90_INTEGER, MPI_COMBINER_F90_REAL, MPI_COMBINER_HINDEXED,
    MPI_COMBINER_HINDEXED_BLOCK, MPI_COMBINER_HVECTOR, MPI_COMBINER_INDEXED,
    MPI_COMBINER_INDEXED_BLOCK, MPI_COMBINER_RESIZED, MPI_COMBINER_STRUCT, MPI_COMBINER_SUBARRAY,
    MPI_COMBINER_VECTOR, MPI_DATATYPE_NULL, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
    MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_NONE, MPI_ERR_ARG, MPI_ERR_COUNT, MPI_ERR_NO_MEM,
    MPI_ERR_TYPE, MPI_ORDER_C, MPI_ORDER_FORTRAN, MPI_SUCCESS, MPI_UNDEFINED, Counts, MPI_Count,
    MPI_Datatype, count_in, count_of, no_counts,
)
from shrimpmx.mpi.attribute cimport attributes_copy, attributes_delete
from shrimpmx.mpi.datatype cimport (
    Block, Datatype, datatype_drop, datatype_finish, datatype_forget, datatype_keep, datatype_new,
    datatype_of, datatype_show, is_predefined, keep_address, keep_count, keep_integer,
)
from shrimpmx.mpi.error cimport DETAIL_DATATYPES, DETAIL_TYPE_SIZE, error_detailed, error_raise
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore


cdef double SIZE_END = 2.0 ** 63


cdef void set_bounds(Datatype *type, int64_t lower, int64_t extent) noexcept nogil:
    type.dense = type.dense and extent == type.size
    type.lower = lower
    type.extent = extent
    type.has_lower = type.has_upper = True


cdef int give(Datatype *type, MPI_Datatype *made) noexcept nogil:
    made[0] = MPI_DATATYPE_NULL
    if type == NULL:
        return error_raise(NULL, MPI_ERR_NO_MEM)
    if type.too_large:
        datatype_drop(type)
        return error_raise(NULL, error_detailed(MPI_ERR_COUNT, DETAIL_TYPE_SIZE))
    if not datatype_show(type):
        datatype_drop(type)
        return error_raise(NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_DATATYPES))
    made[0] = type.handle
    return MPI_SUCCESS


cdef int check(const Datatype *old, int64_t count) noexcept nogil:
    if old == NULL:
        return MPI_ERR_TYPE
    return MPI_SUCCESS if count >= 0 else MPI_ERR_COUNT


cdef int64_t elements_bytes(Datatype *type, const Datatype *old, int64_t elements) noexcept nogil:
    """Bytes from an element of the old type to another; `type` is too large if they do not fit."""
    if <double>elements * old.extent >= SIZE_END or <double>elements * old.extent < -SIZE_END:
        type.too_large = True
        return 0
    return elements * old.extent


# -- regular -------------------------------------------------------------------------

cdef int make_regular(int combiner, int64_t count, int64_t length, int64_t stride,
                      int64_t stride_bytes, MPI_Datatype handle,
                      MPI_Datatype *made) noexcept nogil:
    """`count` groups of `length` elements: one block."""
    cdef Datatype *old = datatype_of(handle)
    cdef Datatype *type
    cdef int code = check(old, min(count, length))
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    type = datatype_new(combiner, 0, 3, 1, 1, 1)
    if type != NULL:
        keep_count(type, count)
        if combiner == MPI_COMBINER_CONTIGUOUS:
            type.blocks[0] = Block(0, count, 1, 0, old)
        else:
            keep_count(type, length)
            type.blocks[0] = Block(0, length, count, stride_bytes, old)
        if combiner == MPI_COMBINER_VECTOR:
            keep_count(type, stride)
            type.blocks[0].stride = elements_bytes(type, old, stride)
        if combiner == MPI_COMBINER_HVECTOR:
            keep_address(type, stride_bytes)
        type.types[0] = old
        datatype_finish(type)
    return give(type, made)


cdef int contiguous(MPI_Count count, MPI_Datatype old, MPI_Datatype *made) noexcept nogil:
    return make_regular(MPI_COMBINER_CONTIGUOUS, count, 1, 0, 0, old, made)


cdef int vector(MPI_Count count, MPI_Count length, MPI_Count stride, MPI_Datatype old,
                MPI_Datatype *made) noexcept nogil:
    return make_regular(MPI_COMBINER_VECTOR, count, length, stride, 0, old, made)


cdef int hvector(MPI_Count count, MPI_Count length, MPI_Count stride, MPI_Datatype old,
                 MPI_Datatype *made) noexcept nogil:
    return make_regular(MPI_COMBINER_HVECTOR, count, length, 0, stride, old, made)


# -- with displacements ----------------------------------------------------------------

cdef int make_indexed(int combiner, int64_t count, Counts lengths, int64_t length, Counts places,
                      bint in_bytes, MPI_Datatype handle, MPI_Datatype *made) noexcept nogil:
    """A block for each of `places`, which count elements, or bytes."""
    cdef Datatype *old = datatype_of(handle)
    cdef Datatype *type
    cdef int64_t index, place, least = min(count, length)
    cdef int code
    for index in range(count if lengths.numbers != NULL else 0):
        least = min(least, count_in(lengths, index))
    code = check(old, least)
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    type = datatype_new(combiner, 0, 2 + 2 * count, count, 1, count)
    if type != NULL:
        keep_count(type, count)
        for index in range(count if lengths.numbers != NULL else 1):
            keep_count(type, count_of(length, lengths, index))
        for index in range(count):
            place = count_in(places, index)
            if in_bytes:
                keep_address(type, place)
            else:
                keep_count(type, place)
                place = elements_bytes(type, old, place)
            type.blocks[index] = Block(place, count_of(length, lengths, index), 1, 0, old)
        type.types[0] = old
        datatype_finish(type)
    return give(type, made)


cdef int indexed(MPI_Count count, Counts lengths, Counts places, MPI_Datatype old,
                 MPI_Datatype *made) noexcept nogil:
    return make_indexed(MPI_COMBINER_INDEXED, count, lengths, 0, places, False, old, made)


cdef int hindexed(MPI_Count count, Counts lengths, Counts places, MPI_Datatype old,
                  MPI_Datatype *made) noexcept nogil:
    return make_indexed(MPI_COMBINER_HINDEXED, count, lengths, 0, places, True, old, made)


cdef int indexed_block(MPI_Count count, MPI_Count length, Counts places, MPI_Datatype old,
                       MPI_Datatype *made) noexcept nogil:
    return make_indexed(MPI_COMBINER_INDEXED_BLOCK, count, no_counts(), length, places, False, old,
                        made)


cdef int hindexed_block(MPI_Count count, MPI_Count length, Counts places, MPI_Datatype old,
                        MPI_Datatype *made) noexcept nogil:
    return make_indexed(MPI_COMBINER_HINDEXED_BLOCK, count, no_counts(), length, places, True, old,
                        made)


cdef int make_struct(MPI_Count count, Counts lengths, Counts places, const MPI_Datatype *handles,
                     MPI_Datatype *made) noexcept nogil:
    cdef Datatype *type
    cdef int64_t index
    cdef int code = MPI_SUCCESS if count >= 0 else MPI_ERR_COUNT
    for index in range(count):
        code = max(code, check(datatype_of(handles[index]), count_in(lengths, index)))
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    type = datatype_new(MPI_COMBINER_STRUCT, 0, 1 + count, count, count, count)
    if type != NULL:
        keep_count(type, count)
        for index in range(count):
            keep_count(type, count_in(lengths, index))
        for index in range(count):
            keep_address(type, count_in(places, index))
            type.types[index] = datatype_of(handles[index])
            type.blocks[index] = Block(count_in(places, index), count_in(lengths, index), 1, 0,
                                       type.types[index])
        datatype_finish(type)
    return give(type, made)


# -- bounds, copies, the end ---------------------------------------------------------------

cdef Datatype *made_of_one(int combiner, int addresses, Datatype *old) noexcept nogil:
    cdef Datatype *type = datatype_new(combiner, 0, 0, addresses, 1, 1)
    if type != NULL:
        type.types[0] = old
        type.blocks[0] = Block(0, 1, 1, 0, old)
        datatype_finish(type)
    return type


cdef int resized(MPI_Datatype handle, MPI_Count lower, MPI_Count extent,
                 MPI_Datatype *made) noexcept nogil:
    cdef Datatype *old = datatype_of(handle)
    cdef Datatype *type
    if old == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    type = made_of_one(MPI_COMBINER_RESIZED, 2, old)
    if type != NULL:
        keep_address(type, lower)
        keep_address(type, extent)
        type.dense = old.dense
        set_bounds(type, lower, extent)
    return give(type, made)


cdef int dup(MPI_Datatype handle, MPI_Datatype *made) noexcept nogil:
    """With the bounds and attributes of the old one; committed if that is."""
    cdef Datatype *old = datatype_of(handle)
    cdef Datatype *type
    cdef int code
    if old == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    type = made_of_one(MPI_COMBINER_DUP, 0, old)
    if type != NULL:
        type.lower = old.lower
        type.extent = old.extent
        type.has_lower = old.has_lower
        type.has_upper = old.has_upper
        type.dense = old.dense
        type.committed = old.committed
    code = give(type, made)
    if code == MPI_SUCCESS:
        code = attributes_copy(old.attributes, handle, &type.attributes)
        if code != MPI_SUCCESS:
            free_type(made)
            return error_raise(NULL, code)
    return code


cdef int commit(MPI_Datatype *handle) noexcept nogil:
    cdef Datatype *type = datatype_of(handle[0])
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    type.committed = True
    return MPI_SUCCESS


cdef int free_type(MPI_Datatype *handle) noexcept nogil:
    """Types and messages that use it go on."""
    cdef Datatype *type = datatype_of(handle[0])
    cdef int code
    if type == NULL or is_predefined(type):
        return error_raise(NULL, MPI_ERR_TYPE)
    if type.handles == 1:
        code = attributes_delete(&type.attributes, handle[0])
        if code != MPI_SUCCESS:
            return error_raise(NULL, code)
    handle[0] = MPI_DATATYPE_NULL
    datatype_forget(type, &type.handles)
    return MPI_SUCCESS


cdef void datatype_make_fill(mpi_table *table) noexcept nogil:
    table.Type_contiguous = contiguous
    table.Type_vector = vector
    table.Type_create_hvector = hvector
    table.Type_indexed = indexed
    table.Type_create_hindexed = hindexed
    table.Type_create_indexed_block = indexed_block
    table.Type_create_hindexed_block = hindexed_block
    table.Type_create_struct = make_struct
    table.Type_create_resized = resized
    table.Type_dup = dup
    table.Type_commit = commit
    table.Type_free = free_type


# -- Datatypes of Fortran by decimal precision and range (MPI 3.1, 17.2.4).
#
# They stay for ever, each with its arguments, and are committed.

cdef extern from "<float.h>" nogil:
    int LDBL_MANT_DIG

cdef enum:
    EXTENDED_DIGITS = 64     # of a long double with 80 bits, which is gfortran's REAL(10)
    FORTRAN_TYPES_MIN = 64

cdef:
    Datatype **fortran_types = NULL
    int fortran_types_count = 0
    int fortran_types_room = 0


cdef MPI_Datatype least_integer(int exponent) noexcept nogil:
    if exponent <= 2:
        return 0x4C00012D
    if exponent <= 4:
        return 0x4C00022F
    if exponent <= 9:
        return 0x4C000430
    if exponent <= 18:
        return 0x4C000831
    return 0x4C001032 if exponent <= 38 else MPI_DATATYPE_NULL


cdef MPI_Datatype least_real(int precision, int exponent, bint is_complex) noexcept nogil:
    if precision <= 6 and exponent <= 37:
        return 0x4C000828 if is_complex else 0x4C000427
    if precision <= 15 and exponent <= 307:
        return 0x4C00102A if is_complex else 0x4C000829
    if precision <= 18 and exponent <= 4931 and LDBL_MANT_DIG == EXTENDED_DIGITS:
        return 0x4C002042 if is_complex else 0x4C00100C
    if precision <= 33 and exponent <= 4931:
        return 0x4C00202C if is_complex else 0x4C00102B
    return MPI_DATATYPE_NULL


cdef Datatype *known_fortran_type(int combiner, int precision, int exponent) noexcept nogil:
    """NULL: no call has made it."""
    cdef Datatype *type
    cdef int index
    for index in range(fortran_types_count):
        type = fortran_types[index]
        if (type.combiner == combiner and type.integers[type.integers_count - 1] == exponent
                and (combiner == MPI_COMBINER_F90_INTEGER or type.integers[0] == precision)):
            return type
    return NULL


cdef Datatype *new_fortran_type(int combiner, int precision, int exponent,
                                MPI_Datatype kind) noexcept nogil:
    """NULL: no memory, or no handle."""
    global fortran_types, fortran_types_count, fortran_types_room
    cdef Datatype *type
    cdef Datatype **types
    cdef int room = max(FORTRAN_TYPES_MIN, 2 * fortran_types_room)
    if fortran_types_count == fortran_types_room:
        types = <Datatype **>realloc(fortran_types, room * sizeof(Datatype *))
        if types == NULL:
            return NULL
        fortran_types = types
        fortran_types_room = room
    type = datatype_new(0, 2, 0, 0, 0, 1)
    if type == NULL:
        return NULL
    type.blocks[0] = Block(0, 1, 1, 0, datatype_of(kind))
    datatype_finish(type)
    if not datatype_show(type):
        datatype_drop(type)
        return NULL
    if combiner != MPI_COMBINER_F90_INTEGER:
        keep_integer(type, precision)
    keep_integer(type, exponent)
    type.committed = True
    type.combiner = combiner
    fortran_types[fortran_types_count] = type
    fortran_types_count += 1
    return type


cdef int by_range(int combiner, int precision, int exponent, MPI_Datatype *made) noexcept nogil:
    cdef MPI_Datatype kind = (
        least_integer(exponent) if combiner == MPI_COMBINER_F90_INTEGER
        else least_real(precision, exponent, combiner == MPI_COMBINER_F90_COMPLEX))
    cdef Datatype *type
    made[0] = MPI_DATATYPE_NULL
    if kind == MPI_DATATYPE_NULL or (precision == MPI_UNDEFINED and exponent == MPI_UNDEFINED):
        return error_raise(NULL, MPI_ERR_ARG)
    call_enter(<EndpointCore>world.core)
    type = known_fortran_type(combiner, precision, exponent)
    if type == NULL:
        type = new_fortran_type(combiner, precision, exponent, kind)
    call_leave(<EndpointCore>world.core)
    if type == NULL:
        return error_raise(NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_DATATYPES))
    made[0] = type.handle
    return MPI_SUCCESS


cdef int f90_integer(int exponent, MPI_Datatype *made) noexcept nogil:
    return by_range(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, exponent, made)


cdef int f90_real(int precision, int exponent, MPI_Datatype *made) noexcept nogil:
    return by_range(MPI_COMBINER_F90_REAL, precision, exponent, made)


cdef int f90_complex(int precision, int exponent, MPI_Datatype *made) noexcept nogil:
    return by_range(MPI_COMBINER_F90_COMPLEX, precision, exponent, made)


cdef void datatype_fortran_fill(mpi_table *table) noexcept nogil:
    table.Type_create_f90_integer = f90_integer
    table.Type_create_f90_real = f90_real
    table.Type_create_f90_complex = f90_complex


# -- Parts of arrays as datatypes: subarrays (MPI 3.1, 4.1.3) and distributed arrays (4.1.4).
#
# Both are a type for each dimension, made of that of the next faster one, with the extent of all of
# the dimension.

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
    cdef Datatype *type = datatype_new(0, 0, 0, 0, 0, 2)
    cdef int64_t bytes = extent
    if type != NULL and fabs(<double>part.all * bytes) >= SIZE_END:
        type.blocks[0].type = type.blocks[1].type = old
        datatype_finish(type)
        type.too_large = True
    elif type != NULL:
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


cdef int give_array(Datatype *type, const Part *parts, int count, int order, Datatype *old,
                    MPI_Datatype *made) noexcept nogil:
    """`type` has the call's arguments, and no block yet."""
    cdef Datatype *nested
    if type == NULL:
        return give(type, made)
    nested = nest(parts, count, order == MPI_ORDER_C, old)
    if nested == NULL:
        type.types_count = type.blocks_count = 0
        datatype_drop(type)
        return give(NULL, made)
    type.types[0] = old
    type.blocks[0] = Block(0, 1, 1, 0, nested)
    datatype_finish(type)
    type.too_large = type.too_large or nested.too_large
    datatype_drop(nested)
    return give(type, made)


cdef enum:
    DIMENSIONS = 64          # more than numpy has


cdef bint fits(int dimensions, int order) noexcept nogil:
    return 0 < dimensions <= DIMENSIONS and order in (MPI_ORDER_C, MPI_ORDER_FORTRAN)


cdef void keep_counts(Datatype *type, Counts counts, int count) noexcept nogil:
    cdef int index
    for index in range(count):
        keep_count(type, count_in(counts, index))


cdef void keep_integers(Datatype *type, const int *integers, int count) noexcept nogil:
    cdef int index
    for index in range(count):
        keep_integer(type, integers[index])


cdef int subarray(int dimensions, Counts sizes, Counts subsizes, Counts starts, int order,
                  MPI_Datatype handle, MPI_Datatype *made) noexcept nogil:
    cdef Part parts[DIMENSIONS]
    cdef Part *part
    cdef Datatype *old = datatype_of(handle)
    cdef Datatype *type
    cdef int index
    if old == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if not fits(dimensions, order):
        return error_raise(NULL, MPI_ERR_ARG)
    for index in range(dimensions):
        part = &parts[index]
        part[0] = Part(count_in(sizes, index), count_in(starts, index), count_in(subsizes, index),
                       1, 0, 0)
        if part.length < 1 or not 0 <= part.start <= part.all - part.length:
            return error_raise(NULL, MPI_ERR_ARG)
    type = datatype_new(MPI_COMBINER_SUBARRAY, 2, 3 * dimensions, 0, 1, 1)
    if type != NULL:
        keep_integer(type, dimensions)
        keep_counts(type, sizes, dimensions)
        keep_counts(type, subsizes, dimensions)
        keep_counts(type, starts, dimensions)
        keep_integer(type, order)
    return give_array(type, parts, dimensions, order, old, made)


cdef bint distribute(Part *part, int64_t all, int how, int argument, int64_t processes,
                     int64_t place) noexcept nogil:
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


cdef int darray(int size, int rank, int dimensions, Counts all, const int *how,
                const int *arguments, const int *processes, int order, MPI_Datatype handle,
                MPI_Datatype *made) noexcept nogil:
    """The grid of processes has the order of C, whatever that of the array is (4.1.4)."""
    cdef Part parts[DIMENSIONS]
    cdef Datatype *old = datatype_of(handle)
    cdef Datatype *type
    cdef int index, place = rank
    cdef int64_t grid = 1
    if old == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if not fits(dimensions, order) or not 0 <= rank < size:
        return error_raise(NULL, MPI_ERR_ARG)
    for index in range(dimensions - 1, -1, -1):
        if processes[index] < 1 or not distribute(&parts[index], count_in(all, index), how[index],
                                                  arguments[index], processes[index],
                                                  place % processes[index]):
            return error_raise(NULL, MPI_ERR_ARG)
        place //= processes[index]
        grid *= processes[index]
    if grid != size:
        return error_raise(NULL, MPI_ERR_ARG)
    type = datatype_new(MPI_COMBINER_DARRAY, 4 + 3 * dimensions, dimensions, 0, 1, 1)
    if type != NULL:
        keep_integer(type, size)
        keep_integer(type, rank)
        keep_integer(type, dimensions)
        keep_counts(type, all, dimensions)
        keep_integers(type, how, dimensions)
        keep_integers(type, arguments, dimensions)
        keep_integers(type, processes, dimensions)
        keep_integer(type, order)
    return give_array(type, parts, dimensions, order, old, made)


cdef void datatype_array_fill(mpi_table *table) noexcept nogil:
    table.Type_create_subarray = subarray
    table.Type_create_darray = darray
