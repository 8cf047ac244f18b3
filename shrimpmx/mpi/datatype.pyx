"""The records of datatypes, built-in ones and those that calls make of them, and their queries.

Each constructor of MPI is a list of blocks of an older type; its data are visited by going down to
types whose data lie side by side.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, strlen, strncpy

from shrimpmx.mpi.abi cimport (
    MPI_BYTE, MPI_COMBINER_NAMED, MPI_DATATYPE_NULL, MPI_ERR_ARG, MPI_ERR_COUNT, MPI_ERR_TYPE,
    MPI_MAX_OBJECT_NAME, MPI_SUCCESS, MPI_UNDEFINED, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Status,
)
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.section cimport called_with_large_counts
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.native.atomics cimport fetch_add_u32
from shrimpmx.native.copy cimport copy_bytes

from shrimpmx.mpi.constants import DATATYPES

cdef enum:
    TYPES = 65536
    HANDLE = <int>0x8C000000
    NUMBER = 0x03FFFFFF

cdef:
    double SIZE_END = 2.0 ** 63
    double REACH_END = 2.0 ** 62

cdef:
    Datatype *derived[TYPES]    # [number]; NULL: there is none
    Numbers numbers             # of derived types, which follow the pairs

# Those that have two values: complex numbers count as one element, these as two.
TWO = ("2INT", "2INTEGER", "2REAL", "2DOUBLE_PRECISION")

cdef enum:
    LOWER_BOUND = 0x4C000010
    UPPER_BOUND = 0x4C000011


# -- built-in ----------------------------------------------------------------------

cdef int datatype_start() except -1:
    cdef Datatype *type
    if built_in[MPI_BYTE & BUILT_IN - 1].handle != 0:
        return 0
    for handle, name in DATATYPES.items():
        type = &built_in[handle & BUILT_IN - 1]
        type.handle = handle
        type.handles = type.uses = 1
        type.size = type.extent = type.true_extent = handle >> 8 & 0xFF
        type.has_lower = handle == LOWER_BOUND
        type.has_upper = handle == UPPER_BOUND
        type.elements = 0 if type.size == 0 else 2 if name in TWO else 1
        type.alignment = type.size // (2 if name in TWO or "COMPLEX" in name else 1)
        prepare_built_in(type, name)
    pair(0, "FLOAT_INT", 0x0A, sizeof(FloatPair))
    pair(1, "DOUBLE_INT", 0x0B, sizeof(DoublePair))
    pair(2, "LONG_INT", 0x07, sizeof(LongPair))
    pair(3, "SHORT_INT", 0x03, sizeof(ShortPair))
    pair(4, "LONG_DOUBLE_INT", 0x0C, sizeof(LongDoublePair))
    return 0


cdef int prepare_built_in(Datatype *type, str name) except -1:
    text = f"MPI_{name}".encode()
    strncpy(type.name, text, MPI_MAX_OBJECT_NAME - 1)
    type.committed = True
    type.dense = type.size == type.extent
    type.combiner = MPI_COMBINER_NAMED
    return 0


cdef int pair(int number, str name, int value, int64_t extent) except -1:
    cdef Datatype *type = datatype_new(MPI_COMBINER_NAMED, 0, 0, 0, 0, 2)
    if type == NULL:
        raise MemoryError
    type.blocks[0] = Block(0, 1, 1, 0, &built_in[value])
    type.blocks[1] = Block(extent - max(built_in[value].alignment, 4), 1, 1, 0, &built_in[0x05])
    datatype_finish(type)
    type.handle = HANDLE | number
    type.handles = 1
    prepare_built_in(type, name)
    derived[number] = type
    return 0


# -- derived -----------------------------------------------------------------------

cdef Datatype *datatype_other(MPI_Datatype handle) noexcept nogil:
    cdef int number = handle & NUMBER
    if (handle & ~NUMBER) != HANDLE or number >= TYPES or derived[number] == NULL:
        return NULL
    return (derived[number] if derived[number].handles + derived[number].reductions > 0
            else NULL)


cdef Datatype *datatype_new(int combiner, int64_t integers, int64_t counts, int64_t addresses,
                            int64_t types, int64_t blocks) noexcept nogil:
    cdef Datatype *type = <Datatype *>calloc(1, sizeof(Datatype))
    if type == NULL:
        return NULL
    type.uses = 1
    type.combiner = combiner
    type.has_large_counts = called_with_large_counts()
    type.types_count = types
    type.blocks_count = blocks
    type.integers = <int *>calloc(integers + counts + 1, sizeof(int))
    type.addresses = <MPI_Aint *>calloc(addresses + 1, sizeof(MPI_Aint))
    type.large = <int64_t *>calloc(counts + addresses + 1, sizeof(int64_t))
    type.types = <Datatype **>calloc(types + 1, sizeof(Datatype *))
    type.blocks = <Block *>calloc(blocks + 1, sizeof(Block))
    if (type.integers == NULL or type.addresses == NULL or type.large == NULL
            or type.types == NULL or type.blocks == NULL):
        destroy(type)
        return NULL
    return type


cdef void keep_integer(Datatype *type, int integer) noexcept nogil:
    type.integers[type.integers_count] = integer
    type.integers_count += 1


cdef void keep_large(Datatype *type, int64_t number) noexcept nogil:
    type.large[type.large_count] = number
    type.large_count += 1


cdef void keep_count(Datatype *type, int64_t count) noexcept nogil:
    """One that is no int is an argument of a call for large counts."""
    if type.has_large_counts:
        keep_large(type, count)
    else:
        keep_integer(type, <int>count)


cdef void keep_address(Datatype *type, int64_t address) noexcept nogil:
    if type.has_large_counts:
        keep_large(type, address)
    else:
        type.addresses[type.addresses_count] = address
        type.addresses_count += 1


cdef void destroy(Datatype *type) noexcept nogil:
    free(type.integers)
    free(type.addresses)
    free(type.large)
    free(type.types)
    free(type.blocks)
    free(type)


cdef bint datatype_show(Datatype *type) noexcept nogil:
    cdef int number = number_take(&numbers, TYPES - PAIRS)
    if number < 0:
        return False
    type.handle = HANDLE | PAIRS + number
    type.handles = 1
    derived[PAIRS + number] = type
    return True


cdef void datatype_keep(Datatype *type) noexcept nogil:
    fetch_add_u32(&type.uses, 1)


cdef void datatype_remember(Datatype *type, uint32_t *counted) noexcept nogil:
    datatype_keep(type)
    fetch_add_u32(counted, 1)


cdef void datatype_forget(Datatype *type, uint32_t *counted) noexcept nogil:
    fetch_add_u32(counted, <uint32_t>-1)
    datatype_drop(type)


cdef void datatype_drop(Datatype *type) noexcept nogil:
    cdef int64_t index
    if is_predefined(type) or fetch_add_u32(&type.uses, <uint32_t>-1) > 1:
        return
    if type.handle != 0:
        derived[type.handle & NUMBER] = NULL
        number_give(&numbers, (type.handle & NUMBER) - PAIRS)
    for index in range(type.blocks_count):
        datatype_drop(type.blocks[index].type)
    for index in range(type.types_count):
        datatype_drop(type.types[index])
    destroy(type)


# -- sizes and bounds ----------------------------------------------------------------

cdef void datatype_finish(Datatype *type) noexcept nogil:
    cdef int64_t index
    cdef Block *block
    for index in range(type.types_count):
        datatype_keep(type.types[index])
    for index in range(type.blocks_count):
        block = &type.blocks[index]
        datatype_keep(block.type)
        if block.repeat == 0 or block.length == 0:
            continue
        if (<double>block.repeat * block.length * block.type.size + type.size >= SIZE_END
                or reach(block) >= REACH_END):
            type.too_large = True
            continue
        type.size += block.repeat * block.length * block.type.size
        type.elements += block.repeat * block.length * block.type.elements
    bound(type)
    measure(type)
    type.dense = type.extent == type.size and follow_each_other(type)


cdef double reach(const Block *block) noexcept nogil:
    """How far its elements and their bounds are from the beginning, at most."""
    return (fabs(block.displacement) + fabs(<double>block.stride * (block.repeat - 1))
            + fabs(<double>block.type.extent * block.length)
            + fabs(block.type.lower) + fabs(block.type.true_lower) + block.type.true_extent)


cdef void bound(Datatype *type) noexcept nogil:
    """The lowest and the highest of its elements' bounds, of those that were set if any was; else
    the extent is a multiple of the alignment (MPI 3.1, 4.1.6 and 4.1.7)."""
    cdef int64_t index, low, high, lower = 0, upper = 0
    cdef bint any_lower = False, any_upper = False
    cdef Block *block
    for index in range(type.blocks_count):
        block = &type.blocks[index]
        if block.repeat == 0 or block.length == 0:
            continue
        type.alignment = max(type.alignment, block.type.alignment)
        low = plus(first(block), block.type.lower)
        high = plus(last(block), plus(block.type.lower, block.type.extent))
        if block.type.handle != UPPER_BOUND:
            if not any_lower or block.type.has_lower > type.has_lower:
                lower = low
            elif block.type.has_lower == type.has_lower:
                lower = min(lower, low)
            any_lower = True
        if block.type.handle != LOWER_BOUND:
            if not any_upper or block.type.has_upper > type.has_upper:
                upper = high
            elif block.type.has_upper == type.has_upper:
                upper = max(upper, high)
            any_upper = True
        type.has_lower = type.has_lower or block.type.has_lower
        type.has_upper = type.has_upper or block.type.has_upper
    type.lower = lower
    type.extent = <int64_t>(<uint64_t>upper - <uint64_t>lower)
    if not type.has_upper and type.alignment > 1:
        type.extent = plus(
            type.extent, (type.alignment - type.extent % type.alignment) % type.alignment)


cdef void measure(Datatype *type) noexcept nogil:
    """Where its data begin and end."""
    cdef int64_t index, low, high, end = 0
    cdef bint has_data = False
    cdef Block *block
    for index in range(type.blocks_count):
        block = &type.blocks[index]
        if block.repeat == 0 or block.length == 0 or block.type.size == 0:
            continue
        low = plus(first(block), block.type.true_lower)
        high = plus(last(block), plus(block.type.true_lower, block.type.true_extent))
        type.true_lower = min(type.true_lower, low) if has_data else low
        end = max(end, high) if has_data else high
        has_data = True
    type.true_extent = <int64_t>(<uint64_t>end - <uint64_t>type.true_lower)


cdef int64_t first(const Block *block) noexcept nogil:
    """Where the element that lies lowest begins."""
    return plus(block.displacement, plus(min(0, behind(block.repeat, block.stride)),
                                         min(0, behind(block.length, block.type.extent))))


cdef int64_t last(const Block *block) noexcept nogil:
    """Where the element that lies highest begins."""
    return plus(block.displacement, plus(max(0, behind(block.repeat, block.stride)),
                                         max(0, behind(block.length, block.type.extent))))


# Sums of places wrap modulo 2^64, as no memory has such places.

cdef int64_t plus(int64_t place, int64_t by) noexcept nogil:
    return <int64_t>(<uint64_t>place + <uint64_t>by)


cdef int64_t behind(int64_t count, int64_t stride) noexcept nogil:
    """How far the last of `count` elements lies from the first one."""
    return <int64_t>(<uint64_t>(count - 1) * <uint64_t>stride)


cdef bint follow_each_other(const Datatype *type) noexcept nogil:
    cdef int64_t index, bytes, end = type.true_lower
    cdef Block *block
    for index in range(type.blocks_count):
        block = &type.blocks[index]
        bytes = block.length * block.type.size
        if block.repeat * bytes == 0:
            continue
        if (not block.type.dense or block.displacement + block.type.true_lower != end
                or (block.repeat > 1 and block.stride != bytes)):
            return False
        end += block.repeat * bytes
    return True


# -- data ----------------------------------------------------------------------------

cdef void datatype_walk(const Datatype *type, uint8_t *data, int64_t count, bint basic,
                        visit_function visit, void *context) noexcept nogil:
    cdef int64_t _element, index, _turn
    cdef Block *block
    cdef uint8_t *group
    if type.size == 0:
        return
    if type.blocks_count == 0 or (type.dense and not basic):
        visit(context, type, data + type.true_lower, count)
        return
    for _element in range(count):
        for index in range(type.blocks_count):
            block = &type.blocks[index]
            group = data + block.displacement
            for _turn in range(block.repeat):
                datatype_walk(block.type, group, block.length, basic, visit, context)
                group += block.stride
        data += type.extent


# -- Sizes, bounds, names, envelopes and contents of datatypes, and elements of messages (MPI 3.1,
# 4.1.5 to 4.1.13).

cdef enum:
    # MPI_TYPECLASS_REAL, _INTEGER and _COMPLEX
    CLASS_REAL = 1
    CLASS_INTEGER = 2
    CLASS_COMPLEX = 3


# -- elements of a message -------------------------------------------------------------

cdef int64_t bytes_of_status(const MPI_Status *status) noexcept nogil:
    cdef uint64_t high = <uint32_t>status.count_hi_and_cancelled >> 1
    return <int64_t>(high << 32 | <uint32_t>status.count_lo)


cdef int get_count(const MPI_Status *status, MPI_Datatype handle, MPI_Count *count) noexcept nogil:
    cdef const Datatype *type = datatype_of(handle)
    cdef int64_t received = bytes_of_status(status)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if type.size == 0:
        count[0] = 0 if received == 0 else MPI_UNDEFINED
    elif received % type.size != 0:
        count[0] = MPI_UNDEFINED
    else:
        count[0] = received // type.size
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
    cdef int64_t most
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if count < 0:
        return error_raise(NULL, MPI_ERR_COUNT)
    if type.elements > 0:
        rest = Tally(0, count % type.elements)
        datatype_walk(type, NULL, 1, True, add_bytes, &rest)
        most = <int64_t>BYTES_MAX - rest.bytes
        if type.size > 0 and count // type.elements > most // type.size:
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
    """Of a type that a call for large counts has made MPI has another function."""
    cdef const Datatype *type = datatype_of(handle)
    if type == NULL or type.large_count > 0:
        return error_raise(NULL, MPI_ERR_TYPE)
    integers[0] = <int>type.integers_count
    addresses[0] = <int>type.addresses_count
    types[0] = <int>type.types_count
    combiner[0] = type.combiner
    return MPI_SUCCESS


cdef int get_large_envelope(MPI_Datatype handle, MPI_Count *integers, MPI_Count *addresses,
                            MPI_Count *large, MPI_Count *types, int *combiner) noexcept nogil:
    cdef const Datatype *type = datatype_of(handle)
    if type == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    integers[0] = type.integers_count
    addresses[0] = type.addresses_count
    large[0] = type.large_count
    types[0] = type.types_count
    combiner[0] = type.combiner
    return MPI_SUCCESS


cdef int get_contents(MPI_Datatype handle, int most_integers, int most_addresses, int most_types,
                      int *integers, MPI_Aint *addresses, MPI_Datatype *handles) noexcept nogil:
    cdef const Datatype *type = datatype_of(handle)
    if type != NULL and type.large_count > 0:
        return error_raise(NULL, MPI_ERR_TYPE)
    return get_large_contents(handle, most_integers, most_addresses, 0, most_types, integers,
                              addresses, NULL, handles)


cdef int get_large_contents(MPI_Datatype handle, MPI_Count most_integers, MPI_Count most_addresses,
                            MPI_Count most_large, MPI_Count most_types, int *integers,
                            MPI_Aint *addresses, MPI_Count *large,
                            MPI_Datatype *handles) noexcept nogil:
    """The user gets a handle of each type that is not built in, to be freed."""
    cdef Datatype *type = datatype_of(handle)
    cdef int64_t index
    if type == NULL or type.combiner == MPI_COMBINER_NAMED:
        return error_raise(NULL, MPI_ERR_TYPE)
    if (most_integers < type.integers_count or most_addresses < type.addresses_count
            or most_large < type.large_count or most_types < type.types_count):
        return error_raise(NULL, MPI_ERR_ARG)
    copy_bytes(integers, type.integers, type.integers_count * sizeof(int))
    copy_bytes(addresses, type.addresses, type.addresses_count * sizeof(MPI_Aint))
    copy_bytes(large, type.large, type.large_count * sizeof(MPI_Count))
    for index in range(type.types_count):
        handles[index] = type.types[index].handle
        if not is_predefined(type.types[index]):
            datatype_remember(type.types[index], &type.types[index].handles)
    return MPI_SUCCESS


cdef int match_size(int kind, int size, MPI_Datatype *found) noexcept nogil:
    """Fortran's datatype of that size (17.2.5)."""
    cdef int number
    if kind == CLASS_REAL:
        number = 0x26 if size == 2 else 0x27 if size == 4 else 0x29 if size == 8 else 0x2B
    elif kind == CLASS_INTEGER:
        number = (0x2D if size == 1 else 0x2F if size == 2 else 0x30 if size == 4
                  else 0x31 if size == 8 else 0x32)
    else:
        number = 0x2E if size == 4 else 0x28 if size == 8 else 0x2A if size == 16 else 0x2C
    if not CLASS_REAL <= kind <= CLASS_COMPLEX or built_in[number].size != size:
        return error_raise(NULL, MPI_ERR_ARG)
    found[0] = built_in[number].handle
    return MPI_SUCCESS


cdef enum:                   # types of pairs, and other pairs
    SHORT = 0x4C000203
    INT = 0x4C000405
    LONG = 0x4C000807
    FLOAT = 0x4C00040A
    DOUBLE = 0x4C00080B
    LONG_DOUBLE = 0x4C00100C
    INTEGER = 0x4C00041B
    REAL = 0x4C00041C
    DOUBLE_PRECISION = 0x4C00081F
    PAIR_INTS = 0x4C000816
    PAIR_INTEGERS = 0x4C000820


cdef int get_value_index(MPI_Datatype value, MPI_Datatype index,
                         MPI_Datatype *pair) noexcept nogil:
    """The pair of these types; MPI_DATATYPE_NULL if there is none."""
    pair[0] = MPI_DATATYPE_NULL
    if datatype_of(value) == NULL or datatype_of(index) == NULL:
        return error_raise(NULL, MPI_ERR_TYPE)
    if index == INT:
        pair[0] = pair_with_int(value)
    elif index == value and value == REAL:
        pair[0] = PAIR_REALS
    elif index == value and value == DOUBLE_PRECISION:
        pair[0] = PAIR_DOUBLE_PRECISIONS
    elif index == value and value == INTEGER:
        pair[0] = PAIR_INTEGERS
    return MPI_SUCCESS


cdef MPI_Datatype pair_with_int(MPI_Datatype value) noexcept nogil:
    if value == INT:
        return PAIR_INTS
    if value == FLOAT:
        return PAIR_FLOAT
    if value == DOUBLE:
        return PAIR_DOUBLE
    if value == LONG:
        return PAIR_LONG
    if value == SHORT:
        return PAIR_SHORT
    return PAIR_LONG_DOUBLE if value == LONG_DOUBLE else MPI_DATATYPE_NULL


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
    table.Type_get_envelope_c = get_large_envelope
    table.Type_get_contents_c = get_large_contents
    table.Type_match_size = match_size
    table.Type_get_value_index = get_value_index
    table.Get_address = get_address
