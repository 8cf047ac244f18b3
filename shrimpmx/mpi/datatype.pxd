"""Datatypes: how many bytes an element has."""

from shrimpmx.mpi.abi cimport MPI_Datatype
from shrimpmx.mpi.table cimport mpi_table

cdef enum:
    TYPE_INVALID = -1
    # Pairs of a value and its index.
    PAIR_FLOAT = <int>0x8C000000
    PAIR_DOUBLE = <int>0x8C000001
    PAIR_LONG = <int>0x8C000002
    PAIR_SHORT = <int>0x8C000003
    PAIR_LONG_DOUBLE = <int>0x8C000004

# As the compiler lays them out, with the room between.
cdef struct FloatPair:
    float value
    int place
cdef struct DoublePair:
    double value
    int place
cdef struct LongPair:
    long value
    int place
cdef struct ShortPair:
    short value
    int place
cdef struct IntPair:
    int value
    int place
cdef struct LongDoublePair:
    long double value
    int place

# Bytes of an element of a built-in pair of value and index; TYPE_INVALID of what is none.
cdef int pair_bytes(MPI_Datatype datatype) noexcept nogil
cdef void datatype_fill(mpi_table *table) noexcept nogil


cdef inline int datatype_bytes(MPI_Datatype datatype) noexcept nogil:
    """Bytes of an element, which lie side by side; TYPE_INVALID if there is no such datatype.

    The ABI has the size of a built-in datatype in its handle.
    """
    if <unsigned int>datatype >> 16 == 0x4C00:
        return datatype >> 8 & 0xFF
    return pair_bytes(datatype)
