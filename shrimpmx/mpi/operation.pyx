"""Operations: the built-in ones on the built-in datatypes (MPI 3.1, 5.9.2 to 5.9.4), and users'."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy

from shrimpmx.mpi.abi cimport (
    MPI_DATATYPE_NULL, MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_NO_MEM, MPI_ERR_OP, MPI_ERR_TYPE,
    MPI_SUCCESS, MPI_Count, MPI_Datatype, MPI_Op, MPI_User_function, MPI_User_function_c,
)
from shrimpmx.mpi.datatype cimport (
    INT_MAX, PAIRS, PAIR_DOUBLE, PAIR_DOUBLE_PRECISIONS, PAIR_FLOAT, PAIR_LONG, PAIR_LONG_DOUBLE,
    PAIR_REALS, PAIR_SHORT, Datatype, DoublePair, DoublePrecisionsPair, FloatPair, IntPair,
    LongDoublePair, LongPair, RealsPair, ShortPair, data_missing, datatype_for, datatype_of,
    made_by_range,
)
from shrimpmx.mpi.error cimport DETAIL_OPS, error_detailed, error_raise
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore

cdef enum:
    OP_NULL = 0x18000000
    BUILT_IN = 0x58000000
    HANDLE = <int>0x98000000
    NUMBER = 0x03FFFFFF
    OPS = 65536

cdef enum Operation:         # the lowest bits of a built-in operation's handle
    OP_MAX = 1
    OP_MIN
    OP_SUM
    OP_PROD
    OP_LAND
    OP_BAND
    OP_LOR
    OP_BOR
    OP_LXOR
    OP_BXOR
    OP_MINLOC
    OP_MAXLOC
    OP_REPLACE
    OP_NO_OP

cdef enum Kind:              # of values, as operations see them
    KIND_NONE
    KIND_INT8
    KIND_INT16
    KIND_INT32
    KIND_INT64
    KIND_INT128
    KIND_UINT8
    KIND_UINT16
    KIND_UINT32
    KIND_UINT64
    KIND_FLOAT
    KIND_DOUBLE
    KIND_LONG_DOUBLE
    KIND_QUADRUPLE
    KIND_COMPLEX_FLOAT
    KIND_COMPLEX_DOUBLE
    KIND_COMPLEX_LONG_DOUBLE
    KIND_COMPLEX_QUADRUPLE
    KIND_BOOL
    KIND_BYTE
    KIND_PAIR

# A function of C++'s library or of the standard ABI's, which calls one of the user's; in place of
# one of large counts another one.
ctypedef void (*operation_proxy)(const void *data, void *into, int length, MPI_Datatype datatype,
                                 void *function) noexcept nogil
ctypedef void (*large_proxy)(const void *data, void *into, int64_t length, MPI_Datatype datatype,
                             void *function) noexcept nogil

cdef struct Foreign:         # an operation of the user's
    MPI_User_function *function
    MPI_User_function_c *large_function  # that of large counts, in place of the other one
    operation_proxy called_by  # NULL: it is C's, or Fortran's, which has the same arguments
    bint commutes
    bint freed               # by the user
    int uses                 # the user's handle, and schedules; 0: another may have its number

# At -O2 GCC uses no vectors for loops of unknown length.
cdef extern from * nogil:
    """
    #pragma GCC optimize ("O3")
    """

# Of 16 bytes, as Fortran's compilers have them.
cdef extern from * nogil:
    """
    #ifdef __SIZEOF_FLOAT128__
    typedef __float128 Quadruple;
    typedef _Complex float __attribute__((mode(TC))) ComplexQuadruple;
    #else
    typedef long double Quadruple;
    typedef long double _Complex ComplexQuadruple;
    #endif
    """
    ctypedef long long int128_t "__int128"
    ctypedef long double Quadruple
    ctypedef long double ComplexQuadruple

ctypedef fused Integer:
    int8_t
    int16_t
    int32_t
    int64_t
    int128_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef long double LongDouble

ctypedef fused Real:
    float
    double
    LongDouble

ctypedef fused Pair:
    FloatPair
    DoublePair
    LongPair
    ShortPair
    IntPair
    LongDoublePair
    RealsPair
    DoublePrecisionsPair

cdef extern from "<complex.h>" nogil:
    ctypedef float ComplexFloat "float _Complex"
    ctypedef double ComplexDouble "double _Complex"
    ctypedef long double ComplexLongDouble "long double _Complex"

ctypedef fused Complex:
    ComplexFloat
    ComplexDouble
    ComplexLongDouble

cdef:
    Foreign *foreigners[OPS]
    Numbers numbers


cdef Kind kind_of(MPI_Datatype datatype) noexcept nogil:
    """What the values of a datatype are, by its place in the ABI."""
    cdef int bytes = datatype >> 8 & 0xFF
    cdef int number = datatype & 0xFF
    cdef const Datatype *type
    if <unsigned int>datatype >> 16 != 0x4C00:
        if <unsigned int>datatype - <unsigned int>PAIR_FLOAT < PAIRS:
            return KIND_PAIR
        type = datatype_of(datatype)
        if type == NULL or not made_by_range(type):
            return KIND_NONE
        return kind_of(type.blocks[0].type.handle)
    # char, short, int, long, long long; int8_t to int64_t; Aint, Offset, Count; Fortran's INTEGERs
    if number in (0x01, 0x18, 0x03, 0x05, 0x07, 0x09, 0x37, 0x38, 0x39, 0x3A, 0x43, 0x44, 0x45,
                  0x1B, 0x2D, 0x2F, 0x30, 0x31, 0x32):
        return integer_kind(bytes, True)
    if number in (0x02, 0x04, 0x06, 0x08, 0x19, 0x3B, 0x3C, 0x3D, 0x3E):
        return integer_kind(bytes, False)
    if number in (0x2B, 0x2C):  # REAL16, COMPLEX32
        return KIND_QUADRUPLE if bytes == 16 else KIND_COMPLEX_QUADRUPLE
    if number in (0x0A, 0x0B, 0x0C, 0x1C, 0x1F, 0x27, 0x29):
        return KIND_FLOAT if bytes == 4 else KIND_DOUBLE if bytes == 8 else KIND_LONG_DOUBLE
    if number in (0x40, 0x41, 0x42, 0x34, 0x35, 0x36, 0x1E, 0x22, 0x28, 0x2A):
        return (KIND_COMPLEX_FLOAT if bytes == 8 else KIND_COMPLEX_DOUBLE if bytes == 16
                else KIND_COMPLEX_LONG_DOUBLE)
    if number in (0x3F, 0x33):  # C's and C++'s bool
        return KIND_BOOL
    if number == 0x1D or 0x47 <= number <= 0x4B:  # LOGICAL, LOGICAL1 to LOGICAL16
        return integer_kind(bytes, True)
    if number == 0x0D:
        return KIND_BYTE
    # 2INT, 2INTEGER, 2REAL, 2DOUBLE_PRECISION
    return KIND_PAIR if number in (0x16, 0x20, 0x21, 0x23) else KIND_NONE


cdef Kind integer_kind(int bytes, bint has_sign) noexcept nogil:
    if bytes == 1:
        return KIND_INT8 if has_sign else KIND_UINT8
    if bytes == 2:
        return KIND_INT16 if has_sign else KIND_UINT16
    if bytes == 4:
        return KIND_INT32 if has_sign else KIND_UINT32
    if bytes == 8:
        return KIND_INT64 if has_sign else KIND_UINT64
    return KIND_INT128


cdef Foreign *foreign_of(MPI_Op operation) noexcept nogil:
    if (operation & ~NUMBER) != HANDLE or operation & NUMBER >= OPS:
        return NULL
    return foreigners[operation & NUMBER]


cdef bint is_built_in(MPI_Op operation) noexcept nogil:
    return (operation & ~0xFF) == BUILT_IN and OP_MAX <= operation & 0xFF <= OP_NO_OP


cdef int operation_check(MPI_Op operation, MPI_Datatype datatype, int64_t count) noexcept nogil:
    cdef const Datatype *type = datatype_for(datatype, count)
    cdef Kind kind
    cdef int what = operation & 0xFF
    if type == NULL or not type.committed:
        return MPI_ERR_TYPE
    if foreign_of(operation) != NULL:
        return MPI_ERR_OP if foreign_of(operation).freed else MPI_SUCCESS
    if not is_built_in(operation):
        return MPI_ERR_OP
    if what in (OP_REPLACE, OP_NO_OP) or datatype == MPI_DATATYPE_NULL:
        return MPI_SUCCESS
    kind = kind_of(datatype)
    if kind == KIND_PAIR:
        return MPI_SUCCESS if what in (OP_MINLOC, OP_MAXLOC) else MPI_ERR_OP
    if kind == KIND_BYTE:
        return MPI_SUCCESS if what in (OP_BAND, OP_BOR, OP_BXOR) else MPI_ERR_OP
    if kind == KIND_BOOL:
        return MPI_SUCCESS if what in (OP_LAND, OP_LOR, OP_LXOR) else MPI_ERR_OP
    if KIND_COMPLEX_FLOAT <= kind <= KIND_COMPLEX_QUADRUPLE:
        return MPI_SUCCESS if what in (OP_SUM, OP_PROD) else MPI_ERR_OP
    if KIND_FLOAT <= kind <= KIND_QUADRUPLE:
        return MPI_SUCCESS if what <= OP_PROD else MPI_ERR_OP
    if kind == KIND_NONE:
        return MPI_ERR_OP
    return MPI_SUCCESS if what < OP_MINLOC else MPI_ERR_OP


cdef bint operation_commutes(MPI_Op operation) noexcept nogil:
    cdef Foreign *foreign = foreign_of(operation)
    if foreign != NULL:
        return foreign.commutes
    return operation & 0xFF < OP_REPLACE


cdef bint operation_is_foreign(MPI_Op operation) noexcept nogil:
    return foreign_of(operation) != NULL


cdef void operation_keep(MPI_Op operation) noexcept nogil:
    if operation_is_foreign(operation):
        foreign_of(operation).uses += 1


cdef void operation_drop(MPI_Op operation) noexcept nogil:
    if operation_is_foreign(operation):
        foreign_of(operation).uses -= 1
        if foreign_of(operation).uses == 0:
            number_give(&numbers, operation & NUMBER)


# -- loops ------------------------------------------------------------------------------

cdef void on_integers(int what, const Integer *data, Integer *into, int64_t count) noexcept nogil:
    cdef int64_t i
    if what == OP_SUM:
        for i in range(count):
            into[i] = <Integer>(into[i] + data[i])
    elif what == OP_MAX:
        for i in range(count):
            into[i] = max(into[i], data[i])
    elif what == OP_MIN:
        for i in range(count):
            into[i] = min(into[i], data[i])
    elif what == OP_PROD:
        for i in range(count):
            into[i] = <Integer>(into[i] * data[i])
    elif what == OP_BAND:
        for i in range(count):
            into[i] &= data[i]
    elif what == OP_BOR:
        for i in range(count):
            into[i] |= data[i]
    elif what == OP_BXOR:
        for i in range(count):
            into[i] ^= data[i]
    elif what == OP_LAND:
        for i in range(count):
            into[i] = into[i] != 0 and data[i] != 0
    elif what == OP_LOR:
        for i in range(count):
            into[i] = into[i] != 0 or data[i] != 0
    elif what == OP_LXOR:
        for i in range(count):
            into[i] = (into[i] != 0) != (data[i] != 0)


cdef void on_reals(int what, const Real *data, Real *into, int64_t count) noexcept nogil:
    cdef int64_t i
    if what == OP_SUM:
        for i in range(count):
            into[i] += data[i]
    elif what == OP_MAX:
        for i in range(count):
            into[i] = max(into[i], data[i])
    elif what == OP_MIN:
        for i in range(count):
            into[i] = min(into[i], data[i])
    elif what == OP_PROD:
        for i in range(count):
            into[i] *= data[i]


cdef void on_complex(int what, const Complex *data, Complex *into, int64_t count) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        if what == OP_SUM:
            into[i] = into[i] + data[i]
        else:
            into[i] = data[i] * into[i]


# Cython takes these types for long double: they have loops of their own.

cdef void on_quadruples(int what, const Quadruple *data, Quadruple *into,
                        int64_t count) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        if what == OP_SUM:
            into[i] += data[i]
        elif what == OP_PROD:
            into[i] *= data[i]
        elif (data[i] > into[i]) == (what == OP_MAX):
            into[i] = data[i]


cdef void on_complex_quadruples(int what, const ComplexQuadruple *data, ComplexQuadruple *into,
                                int64_t count) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        if what == OP_SUM:
            into[i] += data[i]
        else:
            into[i] *= data[i]


cdef void on_pairs(int what, const Pair *data, Pair *into, int64_t count) noexcept nogil:
    """Of equal values the lower place counts (MPI 3.1, 5.9.4)."""
    cdef int64_t i
    cdef bint better
    for i in range(count):
        better = (data[i].value < into[i].value if what == OP_MINLOC
                  else data[i].value > into[i].value)
        if better:
            into[i] = data[i]
        elif data[i].value == into[i].value:
            into[i].place = min(into[i].place, data[i].place)


cdef void operation_apply(MPI_Op operation, const void *data, void *into, int64_t count,
                          MPI_Datatype datatype) noexcept nogil:
    cdef Foreign *foreign = foreign_of(operation)
    cdef int what = operation & 0xFF
    if foreign != NULL and foreign.large_function != NULL and foreign.called_by != NULL:
        (<large_proxy>foreign.called_by)(data, into, count, datatype,
                                         <void *>foreign.large_function)
    elif foreign != NULL and foreign.large_function != NULL:
        foreign.large_function(<void *>data, into, <MPI_Count *>&count, &datatype)
    elif foreign != NULL:
        apply_foreign(foreign, <uint8_t *>data, <uint8_t *>into, count, datatype)
    elif what == OP_REPLACE:
        memcpy(into, data, count * datatype_of(datatype).extent)
    elif what != OP_NO_OP:
        apply_to_values(kind_of(datatype), what, data, into, count, datatype)


cdef void apply_foreign(const Foreign *foreign, uint8_t *data, uint8_t *into, int64_t count,
                        MPI_Datatype datatype) noexcept nogil:
    """It is called with an int."""
    cdef int64_t bytes
    cdef int length
    while True:
        length = <int>min(count, INT_MAX)
        if foreign.called_by != NULL:
            foreign.called_by(data, into, length, datatype, <void *>foreign.function)
        else:
            foreign.function(data, into, &length, &datatype)
        count -= length
        if count <= 0:
            return
        bytes = length * datatype_of(datatype).extent
        data += bytes
        into += bytes


cdef void apply_to_values(Kind kind, int what, const void *data, void *into, int64_t count,
                          MPI_Datatype datatype) noexcept nogil:
    if kind == KIND_DOUBLE:
        on_reals[double](what, <const double *>data, <double *>into, count)
    elif kind == KIND_FLOAT:
        on_reals[float](what, <const float *>data, <float *>into, count)
    elif kind == KIND_LONG_DOUBLE:
        on_reals[LongDouble](what, <const LongDouble *>data, <LongDouble *>into, count)
    elif kind == KIND_QUADRUPLE:
        on_quadruples(what, <const Quadruple *>data, <Quadruple *>into, count)
    elif kind == KIND_INT32:
        on_integers[int32_t](what, <const int32_t *>data, <int32_t *>into, count)
    elif kind == KIND_INT64:
        on_integers[int64_t](what, <const int64_t *>data, <int64_t *>into, count)
    elif kind == KIND_INT128:
        on_integers[int128_t](what, <const int128_t *>data, <int128_t *>into, count)
    elif kind == KIND_INT8:
        on_integers[int8_t](what, <const int8_t *>data, <int8_t *>into, count)
    elif kind == KIND_INT16:
        on_integers[int16_t](what, <const int16_t *>data, <int16_t *>into, count)
    elif kind in (KIND_UINT8, KIND_BYTE, KIND_BOOL):
        on_integers[uint8_t](what, <const uint8_t *>data, <uint8_t *>into, count)
    elif kind == KIND_UINT16:
        on_integers[uint16_t](what, <const uint16_t *>data, <uint16_t *>into, count)
    elif kind == KIND_UINT32:
        on_integers[uint32_t](what, <const uint32_t *>data, <uint32_t *>into, count)
    elif kind == KIND_UINT64:
        on_integers[uint64_t](what, <const uint64_t *>data, <uint64_t *>into, count)
    elif kind == KIND_COMPLEX_FLOAT:
        on_complex[ComplexFloat](what, <const ComplexFloat *>data, <ComplexFloat *>into, count)
    elif kind == KIND_COMPLEX_DOUBLE:
        on_complex[ComplexDouble](what, <const ComplexDouble *>data, <ComplexDouble *>into, count)
    elif kind == KIND_COMPLEX_LONG_DOUBLE:
        on_complex[ComplexLongDouble](what, <const ComplexLongDouble *>data,
                                      <ComplexLongDouble *>into, count)
    elif kind == KIND_COMPLEX_QUADRUPLE:
        on_complex_quadruples(what, <const ComplexQuadruple *>data, <ComplexQuadruple *>into,
                              count)
    else:
        apply_to_pairs(what, data, into, count, datatype)


cdef void apply_to_pairs(int what, const void *data, void *into, int64_t count,
                         MPI_Datatype datatype) noexcept nogil:
    if datatype == PAIR_DOUBLE:
        on_pairs[DoublePair](what, <const DoublePair *>data, <DoublePair *>into, count)
    elif datatype == PAIR_FLOAT:
        on_pairs[FloatPair](what, <const FloatPair *>data, <FloatPair *>into, count)
    elif datatype == PAIR_LONG:
        on_pairs[LongPair](what, <const LongPair *>data, <LongPair *>into, count)
    elif datatype == PAIR_SHORT:
        on_pairs[ShortPair](what, <const ShortPair *>data, <ShortPair *>into, count)
    elif datatype == PAIR_LONG_DOUBLE:
        on_pairs[LongDoublePair](what, <const LongDoublePair *>data, <LongDoublePair *>into,
                                 count)
    elif datatype == PAIR_REALS:
        on_pairs[RealsPair](what, <const RealsPair *>data, <RealsPair *>into, count)
    elif datatype == PAIR_DOUBLE_PRECISIONS:
        on_pairs[DoublePrecisionsPair](what, <const DoublePrecisionsPair *>data,
                                       <DoublePrecisionsPair *>into, count)
    else:
        on_pairs[IntPair](what, <const IntPair *>data, <IntPair *>into, count)


# -- calls -------------------------------------------------------------------------------

cdef int op_create(MPI_User_function *function, int commutes, MPI_Op *made) noexcept nogil:
    return make(function, NULL, commutes, made)


cdef int op_create_c(MPI_User_function_c *function, int commutes, MPI_Op *made) noexcept nogil:
    return make(NULL, function, commutes, made)


cdef int make(MPI_User_function *function, MPI_User_function_c *large_function, int commutes,
              MPI_Op *made) noexcept nogil:
    cdef int number = number_take(&numbers, OPS)
    made[0] = OP_NULL
    if number < 0:
        return error_raise(NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_OPS))
    if foreigners[number] == NULL:
        foreigners[number] = <Foreign *>calloc(1, sizeof(Foreign))
    if foreigners[number] == NULL:
        number_give(&numbers, number)
        return error_raise(NULL, MPI_ERR_NO_MEM)
    foreigners[number][0] = Foreign(function, large_function, NULL, commutes != 0, False, 1)
    made[0] = HANDLE | number
    return MPI_SUCCESS


cdef int set_proxy(MPI_Op operation, void *calls) noexcept nogil:
    if foreign_of(operation) == NULL:
        return error_raise(NULL, MPI_ERR_OP)
    foreign_of(operation).called_by = <operation_proxy>calls
    return MPI_SUCCESS


cdef int op_free(MPI_Op *operation) noexcept nogil:
    if foreign_of(operation[0]) == NULL or foreign_of(operation[0]).freed:
        return error_raise(NULL, MPI_ERR_OP)
    call_enter(<EndpointCore>world.core)
    foreign_of(operation[0]).freed = True
    operation_drop(operation[0])
    call_leave(<EndpointCore>world.core)
    operation[0] = OP_NULL
    return MPI_SUCCESS


cdef int op_commutative(MPI_Op operation, int *commutes) noexcept nogil:
    cdef Foreign *foreign = foreign_of(operation)
    if foreign.freed if foreign != NULL else not is_built_in(operation):
        return error_raise(NULL, MPI_ERR_OP)
    commutes[0] = operation_commutes(operation)
    return MPI_SUCCESS


cdef int reduce_local(const void *data, void *into, MPI_Count count, MPI_Datatype datatype,
                      MPI_Op operation) noexcept nogil:
    cdef int code = operation_check(operation, datatype, count)
    if count < 0:
        code = MPI_ERR_COUNT
    if code == MPI_SUCCESS and (data_missing(data, datatype_for(datatype, count), count)
                                or data_missing(into, datatype_for(datatype, count), count)):
        code = MPI_ERR_BUFFER
    if code != MPI_SUCCESS:
        return error_raise(NULL, code)
    operation_apply(operation, data, into, count, datatype)
    return MPI_SUCCESS


cdef void operation_fill(mpi_table *table) noexcept nogil:
    table.Op_create = op_create
    table.Op_create_c = op_create_c
    table.Op_set_proxy = set_proxy
    table.Op_free = op_free
    table.Op_commutative = op_commutative
    table.Reduce_local = reduce_local
