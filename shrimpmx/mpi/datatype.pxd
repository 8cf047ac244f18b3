"""Datatypes: records of what an element is made of, and the runs of bytes that it has in memory."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t

from shrimpmx.mpi.abi cimport (
    MPI_BYTE, MPI_COMBINER_F90_INTEGER, MPI_COMBINER_F90_REAL, MPI_COMBINER_NAMED,
    MPI_DATATYPE_NULL, MPI_MAX_OBJECT_NAME, MPI_Aint, MPI_Datatype,
)
from shrimpmx.mpi.communicator cimport Attribute
from shrimpmx.mpi.table cimport mpi_table

cdef enum:
    INT_MAX = 0x7FFFFFFF
    BYTES_MAX = 0x7FFFFFFFFFFFFFFF

# `repeat` groups of `length` elements of `type` that lie side by side: the first group is
# `displacement` bytes from the beginning, the next ones `stride` bytes further each.
cdef struct Block:
    int64_t displacement
    int64_t length
    int64_t repeat
    int64_t stride
    Datatype *type

# All sizes and places are bytes (MPI 3.1, 4.1).
cdef struct Datatype:
    MPI_Datatype handle
    uint32_t handles         # that the user has
    uint32_t reductions      # under way, whose operation gets the handle
    uint32_t uses            # those, and types and messages under way that need the record
    bint committed
    int64_t size             # of an element's data
    int64_t elements         # basic ones that it has
    int64_t lower            # bound of an element
    int64_t extent           # from an element to the next
    int64_t true_lower       # where its data begin
    int64_t true_extent
    bint has_lower           # a bound was set, here or in a type that it is made of
    bint has_upper
    bint too_large           # its size does not fit into 64 bits
    bint dense               # elements' data lie side by side, in order and without a gap
    int64_t alignment        # of a basic type, or the widest that it has
    int64_t blocks_count     # 0: a basic type
    Block *blocks
    # The call that made it, with its arguments (4.1.13).
    int combiner
    bint has_large_counts    # it was made by a call for large counts, which are `large` then
    int64_t integers_count
    int64_t addresses_count
    int64_t large_count
    int64_t types_count
    int *integers
    MPI_Aint *addresses
    int64_t *large
    Datatype **types
    Attribute *attributes    # records, in no order
    char[MPI_MAX_OBJECT_NAME] name

cdef enum:
    BUILT_IN = 128           # records: a handle's lowest seven bits have the number
    # Pairs of a value and its index.
    PAIR_FLOAT = <int>0x8C000000
    PAIR_DOUBLE = <int>0x8C000001
    PAIR_LONG = <int>0x8C000002
    PAIR_SHORT = <int>0x8C000003
    PAIR_LONG_DOUBLE = <int>0x8C000004
    PAIRS = 5
    # The same of Fortran's, whose index has the type of the value.
    PAIR_REALS = 0x4C000821
    PAIR_DOUBLE_PRECISIONS = 0x4C001023

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
cdef struct RealsPair:
    float value
    float place
cdef struct DoublePrecisionsPair:
    double value
    double place

cdef Datatype built_in[BUILT_IN]

# A run of `count` elements of `type` at `data`.
ctypedef void (*visit_function)(void *context, const Datatype *type, uint8_t *data,
                                int64_t count) noexcept nogil

# Visits the data of `count` elements in their order: runs of dense types, or of basic ones.
cdef void datatype_walk(const Datatype *type, uint8_t *data, int64_t count, bint basic,
                        visit_function visit, void *context) noexcept nogil
# A derived type, or a pair, by its handle; NULL: there is none.
cdef Datatype *datatype_other(MPI_Datatype handle) noexcept nogil
# A record with room for its blocks and its maker's arguments, which the user does not see yet: so
# many of each kind are kept by the functions below, in their order.
cdef Datatype *datatype_new(int combiner, int64_t integers, int64_t counts, int64_t addresses,
                            int64_t types, int64_t blocks) noexcept nogil
cdef void keep_integer(Datatype *type, int integer) noexcept nogil
cdef void keep_count(Datatype *type, int64_t count) noexcept nogil
cdef void keep_address(Datatype *type, int64_t address) noexcept nogil
# Its blocks and arguments are there: sizes, bounds and uses.
cdef void datatype_finish(Datatype *type) noexcept nogil
# Gives it a handle; False without memory.
cdef bint datatype_show(Datatype *type) noexcept nogil
# One use more or less; with the last one the record is gone. With or without the lock.
cdef void datatype_keep(Datatype *type) noexcept nogil
cdef void datatype_drop(Datatype *type) noexcept nogil
# A use that keeps the handle valid: the user's, or that of a reduction.
cdef void datatype_remember(Datatype *type, uint32_t *counted) noexcept nogil
cdef void datatype_forget(Datatype *type, uint32_t *counted) noexcept nogil
cdef int datatype_start() except -1


cdef inline bint bytes_fit(int64_t bytes, int64_t count) noexcept nogil:
    """Whether the bytes of `count` elements of `bytes` each are a number of 63 bits."""
    if <uint64_t>count <= INT_MAX and <uint64_t>bytes <= INT_MAX:
        return True
    return count >= 0 and (count == 0 or bytes <= <int64_t>BYTES_MAX // count)


cdef inline bint made_by_range(const Datatype *type) noexcept nogil:
    """Whether it is one of Fortran's by precision and range (17.2.4), made of a built-in one."""
    return MPI_COMBINER_F90_REAL <= type.combiner <= MPI_COMBINER_F90_INTEGER


cdef inline bint is_predefined(const Datatype *type) noexcept nogil:
    """Whether it stays for ever."""
    return type.combiner == MPI_COMBINER_NAMED or made_by_range(type)


cdef inline bint is_nowhere(const void *data) noexcept nogil:
    """NULL or MPI_IN_PLACE, which is -1."""
    return <uintptr_t>data + 1 <= 1


cdef inline bint data_missing(const void *data, const Datatype *type, int64_t count) noexcept nogil:
    """Whether elements would begin at NULL, or at MPI_IN_PLACE where it has no meaning. Behind
    MPI_BOTTOM, which is NULL, too, they begin at an address that their datatype has."""
    return (is_nowhere(data) and count > 0 and type.size > 0
            and (data != NULL or type.true_lower == 0))


cdef inline Datatype *datatype_of(MPI_Datatype handle) noexcept nogil:
    """The datatype of a handle; NULL: there is none."""
    cdef Datatype *type = &built_in[handle & BUILT_IN - 1]
    return type if type.handle == handle and handle != 0 else datatype_other(handle)


cdef inline Datatype *bytes_type() noexcept nogil:
    return &built_in[MPI_BYTE & BUILT_IN - 1]


cdef inline Datatype *datatype_for(MPI_Datatype handle, int64_t count) noexcept nogil:
    """The datatype of `count` elements: no elements need none."""
    if count == 0 and handle == MPI_DATATYPE_NULL:
        return bytes_type()
    return datatype_of(handle)


# -- What a datatype is made of, its sizes, and how many elements a message has.

cdef void datatype_query_fill(mpi_table *table) noexcept nogil
