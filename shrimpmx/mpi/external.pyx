"""Basic types to and from "external32".

A value of `alignment` bytes becomes one of as many in the other order; those of another size there
are long (4 bytes), wide characters (2), and long double, which has 16 bytes as quadruple precision.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from shrimpmx.mpi.datatype cimport Datatype

cdef extern from "<float.h>" nogil:
    int LDBL_MANT_DIG

cdef enum:                   # numbers of built-in types
    WCHAR = 0x0E
    LONG = 0x07
    UNSIGNED_LONG = 0x08
    # The 80-bit format: 64 bits with the leading one, 112 without it in quadruple precision.
    EXTENDED_DIGITS = 64


cdef int64_t value_bytes(const Datatype *type) noexcept nogil:
    """Of one value of an element there."""
    cdef int number = type.handle & 0xFF
    if number == WCHAR:
        return 2
    return 4 if number in (LONG, UNSIGNED_LONG) else type.alignment


cdef bint is_extended(const Datatype *type) noexcept nogil:
    return type.alignment == sizeof(long double) and LDBL_MANT_DIG == EXTENDED_DIGITS


cdef int64_t external_bytes(const Datatype *type) noexcept nogil:
    return type.size // type.alignment * value_bytes(type)


cdef void external_write(const Datatype *type, const uint8_t *data, int64_t count,
                         uint8_t *packed) noexcept nogil:
    cdef int64_t _index, byte, bytes = value_bytes(type)
    for _index in range(count * (type.size // type.alignment)):
        if is_extended(type):
            write_extended(data, packed)
        else:
            for byte in range(bytes):
                packed[bytes - 1 - byte] = data[byte]
        data += type.alignment
        packed += bytes


cdef void external_read(const Datatype *type, uint8_t *data, int64_t count,
                        const uint8_t *packed) noexcept nogil:
    cdef int64_t _index, byte, bytes = value_bytes(type)
    for _index in range(count * (type.size // type.alignment)):
        if is_extended(type):
            read_extended(data, packed)
        else:
            for byte in range(bytes):
                data[byte] = packed[bytes - 1 - byte]
            if bytes < type.alignment:
                memset(data + bytes, 0xFF if type.handle & 0xFF == LONG and packed[0] & 0x80
                       else 0, type.alignment - bytes)
        data += type.alignment
        packed += bytes


cdef void write_extended(const uint8_t *data, uint8_t *packed) noexcept nogil:
    """Sign and exponent are the same, with the same bias; of the fraction the leading one goes."""
    cdef uint64_t fraction
    cdef int byte
    memcpy(&fraction, data, sizeof(fraction))
    memset(packed, 0, 16)
    packed[0] = data[9]
    packed[1] = data[8]
    # 63 bits, from the highest of 112.
    fraction <<= 1
    for byte in range(8):
        packed[2 + byte] = <uint8_t>(fraction >> 56)
        fraction <<= 8


cdef void read_extended(uint8_t *data, const uint8_t *packed) noexcept nogil:
    """What does not fit into 63 bits is cut."""
    cdef uint64_t fraction = 0
    cdef int byte
    for byte in range(8):
        fraction = fraction << 8 | packed[2 + byte]
    fraction >>= 1
    # Numbers that are not denormal have a leading one.
    if packed[0] & 0x7F or packed[1]:
        fraction |= <uint64_t>1 << 63
    memset(data, 0, sizeof(long double))
    memcpy(data, &fraction, sizeof(fraction))
    data[8] = packed[1]
    data[9] = packed[0]
