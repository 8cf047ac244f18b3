"""MPI_Dims_create: a balanced grid for a number of processes (MPI 3.1, 7.5.2).

The largest dimension is as small as it can be; of such grids the next one is, and so on.
"""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport MPI_ERR_ARG, MPI_ERR_DIMS, MPI_SUCCESS
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table

cdef enum:
    # No number below 2**31 has more.
    DIVISORS_MAX = 1600
    # Nor has it so many factors above 1.
    FACTORS_MAX = 31


cdef struct Divisors:        # of a number, in their order
    int count
    int[DIVISORS_MAX] values


cdef void divisors_find(Divisors *divisors, int number) noexcept nogil:
    cdef int64_t low = 1
    cdef int index, pairs
    divisors.count = 0
    while low * low <= number:
        if number % low == 0:
            divisors.values[divisors.count] = <int>low
            divisors.count += 1
        low += 1
    pairs = divisors.count
    for index in range(pairs - 1, -1, -1):
        low = divisors.values[index]
        if low * low != number:
            divisors.values[divisors.count] = <int>(number // low)
            divisors.count += 1


cdef bint reaches(int factor, int number, int count) noexcept nogil:
    """Whether a product of `count` such factors is at least `number`."""
    cdef int64_t product = 1
    cdef int _turn
    for _turn in range(count):
        if product >= number:
            return True
        product *= factor
    return product >= number


cdef bint factorize(const Divisors *divisors, int number, int count, int largest,
                    int *factors) noexcept nogil:
    """The least product of `count` factors, none above the one before it; False: there is none."""
    cdef int index, factor
    if count == 0:
        return number == 1
    for index in range(divisors.count):
        factor = divisors.values[index]
        if factor > largest:
            return False
        if number % factor == 0 and reaches(factor, number, count):
            factors[0] = factor
            if factorize(divisors, number // factor, count - 1, factor, factors + 1):
                return True
    return False


cdef int dims_create(int nnodes, int ndims, int *dims) noexcept nogil:
    """Sets the dimensions that are 0, to values that do not grow."""
    cdef Divisors divisors
    cdef int[FACTORS_MAX] factors
    cdef int dimension, free = 0, place = 0
    cdef int64_t number = nnodes
    if nnodes <= 0:
        return error_raise(NULL, MPI_ERR_ARG)
    for dimension in range(ndims):
        if dims[dimension] < 0 or (dims[dimension] > 0 and number % dims[dimension] != 0):
            return error_raise(NULL, MPI_ERR_DIMS)
        if dims[dimension] == 0:
            free += 1
        else:
            number //= dims[dimension]
    if ndims < 0:
        return error_raise(NULL, MPI_ERR_DIMS)
    if free == 0:
        return MPI_SUCCESS
    divisors_find(&divisors, <int>number)
    factorize(&divisors, <int>number, min(free, FACTORS_MAX), <int>number, factors)
    for dimension in range(ndims):
        if dims[dimension] == 0:
            dims[dimension] = factors[place] if place < FACTORS_MAX else 1
            place += 1
    return MPI_SUCCESS


cdef void dimensions_fill(mpi_table *table) noexcept nogil:
    table.Dims_create = dims_create
