"""The records of datatypes: the built-in ones, and those that calls make of them.

Each constructor of MPI is a list of blocks of an older type; its data are visited by going down to
types whose data lie side by side.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport strncpy

from shrimpmx.mpi.abi cimport (
    MPI_Aint, MPI_BYTE, MPI_COMBINER_NAMED, MPI_Datatype, MPI_MAX_OBJECT_NAME,
)
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.native.atomics cimport fetch_add_u32

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

# The handles of the ABI have the size of an element in their second byte.
NAMES = {
    0x4C000101: "CHAR", 0x4C000102: "UNSIGNED_CHAR", 0x4C000118: "SIGNED_CHAR",
    0x4C00040E: "WCHAR", 0x4C000203: "SHORT", 0x4C000204: "UNSIGNED_SHORT", 0x4C000405: "INT",
    0x4C000406: "UNSIGNED", 0x4C000807: "LONG", 0x4C000808: "UNSIGNED_LONG",
    0x4C000809: "LONG_LONG_INT", 0x4C000819: "UNSIGNED_LONG_LONG", 0x4C00040A: "FLOAT",
    0x4C00080B: "DOUBLE", 0x4C00100C: "LONG_DOUBLE", 0x4C00010D: "BYTE", 0x4C00010F: "PACKED",
    0x4C000137: "INT8_T", 0x4C000238: "INT16_T", 0x4C000439: "INT32_T", 0x4C00083A: "INT64_T",
    0x4C00013B: "UINT8_T", 0x4C00023C: "UINT16_T", 0x4C00043D: "UINT32_T",
    0x4C00083E: "UINT64_T", 0x4C00013F: "C_BOOL", 0x4C000840: "C_COMPLEX",
    0x4C001041: "C_DOUBLE_COMPLEX", 0x4C002042: "C_LONG_DOUBLE_COMPLEX", 0x4C000843: "AINT",
    0x4C000844: "OFFSET", 0x4C000845: "COUNT", 0x4C000133: "CXX_BOOL",
    0x4C000834: "CXX_FLOAT_COMPLEX", 0x4C001035: "CXX_DOUBLE_COMPLEX",
    0x4C002036: "CXX_LONG_DOUBLE_COMPLEX", 0x4C000816: "2INT", 0x4C00011A: "CHARACTER",
    0x4C00041D: "LOGICAL", 0x4C00041B: "INTEGER", 0x4C00041C: "REAL",
    0x4C00081F: "DOUBLE_PRECISION", 0x4C00081E: "COMPLEX", 0x4C001022: "DOUBLE_COMPLEX",
    0x4C000820: "2INTEGER", 0x4C000821: "2REAL", 0x4C001023: "2DOUBLE_PRECISION",
    0x4C00012D: "INTEGER1", 0x4C00022F: "INTEGER2", 0x4C000430: "INTEGER4",
    0x4C000831: "INTEGER8", 0x4C000427: "REAL4", 0x4C000829: "REAL8", 0x4C00102B: "REAL16",
    0x4C000828: "COMPLEX8", 0x4C00102A: "COMPLEX16", 0x4C00202C: "COMPLEX32",
    0x4C000246: "FLOAT16",
}
# Those that have two values: complex numbers count as one element, these as two.
TWO = ("2INT", "2INTEGER", "2REAL", "2DOUBLE_PRECISION")


# -- built-in ----------------------------------------------------------------------

cdef int datatype_start() except -1:
    cdef Datatype *type
    if built_in[MPI_BYTE & BUILT_IN - 1].handle != 0:
        return 0
    for handle, name in NAMES.items():
        type = &built_in[handle & BUILT_IN - 1]
        type.handle = handle
        type.handles = type.uses = 1
        type.size = type.extent = type.true_extent = handle >> 8 & 0xFF
        type.elements = 2 if name in TWO else 1
        type.alignment = type.size // (2 if name in TWO or "COMPLEX" in name else 1)
        if type.alignment == 0:
            raise AssertionError(name)
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
    cdef Datatype *type = datatype_new(MPI_COMBINER_NAMED, 0, 0, 0, 2)
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


cdef Datatype *datatype_new(int combiner, int integers, int addresses, int types,
                            int64_t blocks) noexcept nogil:
    cdef Datatype *type = <Datatype *>calloc(1, sizeof(Datatype))
    if type == NULL:
        return NULL
    type.uses = 1
    type.combiner = combiner
    type.integers_count = integers
    type.addresses_count = addresses
    type.types_count = types
    type.blocks_count = blocks
    type.integers = <int *>calloc(integers + 1, sizeof(int))
    type.addresses = <MPI_Aint *>calloc(addresses + 1, sizeof(MPI_Aint))
    type.types = <Datatype **>calloc(types + 1, sizeof(Datatype *))
    type.blocks = <Block *>calloc(blocks + 1, sizeof(Block))
    if (type.integers == NULL or type.addresses == NULL or type.types == NULL
            or type.blocks == NULL):
        destroy(type)
        return NULL
    return type


cdef void destroy(Datatype *type) noexcept nogil:
    free(type.integers)
    free(type.addresses)
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
    if type.combiner == MPI_COMBINER_NAMED or fetch_add_u32(&type.uses, <uint32_t>-1) > 1:
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
        if block.repeat * block.length == 0:
            continue
        type.alignment = max(type.alignment, block.type.alignment)
        low = first(block) + block.type.lower
        high = last(block) + block.type.lower + block.type.extent
        if not any_lower or block.type.has_lower > type.has_lower:
            lower = low
        elif block.type.has_lower == type.has_lower:
            lower = min(lower, low)
        if not any_upper or block.type.has_upper > type.has_upper:
            upper = high
        elif block.type.has_upper == type.has_upper:
            upper = max(upper, high)
        type.has_lower = type.has_lower or block.type.has_lower
        type.has_upper = type.has_upper or block.type.has_upper
        any_lower = any_upper = True
    type.lower = lower
    type.extent = upper - lower
    if not type.has_upper and type.alignment > 1:
        type.extent += (type.alignment - type.extent % type.alignment) % type.alignment


cdef void measure(Datatype *type) noexcept nogil:
    """Where its data begin and end."""
    cdef int64_t index, low, high, end = 0
    cdef bint has_data = False
    cdef Block *block
    for index in range(type.blocks_count):
        block = &type.blocks[index]
        if block.repeat * block.length * block.type.size == 0:
            continue
        low = first(block) + block.type.true_lower
        high = last(block) + block.type.true_lower + block.type.true_extent
        type.true_lower = min(type.true_lower, low) if has_data else low
        end = max(end, high) if has_data else high
        has_data = True
    type.true_extent = end - type.true_lower


cdef int64_t first(const Block *block) noexcept nogil:
    """Where the element that lies lowest begins."""
    return (block.displacement + min(0, (block.repeat - 1) * block.stride)
            + min(0, (block.length - 1) * block.type.extent))


cdef int64_t last(const Block *block) noexcept nogil:
    """Where the element that lies highest begins."""
    return (block.displacement + max(0, (block.repeat - 1) * block.stride)
            + max(0, (block.length - 1) * block.type.extent))


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
