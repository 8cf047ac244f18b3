"""Operations of MPI on datatypes, and handles that name none: a world of one, by the C calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike
from support.mpi_worlds import COMM_WORLD, Calls, data_of, run_worlds

ERRORS_RETURN = 0x54000001
MAX, MIN, SUM, PROD, LAND, LOR, LXOR = (0x58000000 + number for number in (1, 2, 3, 4, 5, 7, 9))
MINLOC, MAXLOC, NO_OP = 0x5800000B, 0x5800000C, 0x5800000E
ERR_OP, CLASS_MASK = 9, 0xFF
# The pairs of C and Fortran, by the types of the value and of its place.
PAIRS: dict[str, tuple[int, DTypeLike, DTypeLike]] = {
    "FLOAT_INT": (-0x74000000, "f4", "i4"),
    "DOUBLE_INT": (-0x73FFFFFF, "f8", "i4"),
    "LONG_INT": (-0x73FFFFFE, "i8", "i4"),
    "SHORT_INT": (-0x73FFFFFD, "i2", "i4"),
    "LONG_DOUBLE_INT": (-0x73FFFFFC, np.longdouble, "i4"),
    "2INT": (0x4C000816, "i4", "i4"),
    "2INTEGER": (0x4C000820, "i4", "i4"),
    "2REAL": (0x4C000821, "f4", "f4"),
    "2DOUBLE_PRECISION": (0x4C001023, "f8", "f8"),
}


def alone(work: Callable[[Calls], Any]) -> Any:
    """What a rank alone makes of it; errors return."""

    def life(mpi: Calls) -> Any:
        mpi.Comm_set_errhandler(COMM_WORLD, ERRORS_RETURN)
        return work(mpi)

    return run_worlds(1, life)[0]


@pytest.mark.parametrize("name", PAIRS)
def test_the_least_and_the_greatest_with_their_places(name: str) -> None:
    handle, value, place = PAIRS[name]
    kind = np.dtype([("value", value), ("place", place)], align=True)
    left = np.array([(1, 7), (5, 7), (3, 7), (-2, 9)], kind)
    right = np.array([(2, 4), (4, 4), (3, 4), (-2, 9)], kind)

    def result(operation: int) -> list[tuple[int, int]]:
        into = right.copy()
        alone(lambda mpi: mpi.Reduce_local(data_of(left), data_of(into), 4, handle, operation))
        return [(int(pair["value"]), int(pair["place"])) for pair in into]

    assert result(MINLOC) == [(1, 7), (4, 4), (3, 4), (-2, 9)]
    assert result(MAXLOC) == [(2, 4), (5, 7), (3, 4), (-2, 9)]


def test_only_operations_commute() -> None:
    def code(mpi: Calls, operation: int) -> bool:
        try:
            mpi.Op_commutative(operation, ctypes.c_int())
        except AssertionError:
            return False
        return True

    def work(mpi: Calls) -> list[bool]:
        made = ctypes.c_int()
        mpi.Op_create(ctypes.c_void_p(1), 1, made)
        handle = made.value
        before = code(mpi, handle)
        mpi.Op_free(made)
        handles = [MAXLOC, NO_OP, 0x58000000, NO_OP + 1, 0x580000FF, 0x18000000, handle]
        return [before, *(code(mpi, each) for each in handles)]

    assert alone(work) == [True, True, True, False, False, False, False, False]


def quadruple(value: int) -> bytes:
    """A number other than 0 as REAL16, of which numpy has no type."""
    digits = abs(value).bit_length() - 1
    fraction = (abs(value) << (112 - digits)) - (1 << 112)
    return ((value < 0) << 127 | (0x3FFF + digits) << 112 | fraction).to_bytes(16, "little")


def complex_quadruple(value: complex) -> bytes:
    return quadruple(int(value.real)) + quadruple(int(value.imag))


def integer(length: int) -> Callable[[int], bytes]:
    return lambda value: value.to_bytes(length, "little", signed=True)


# Fortran's types beyond those of C: an element's bytes, and for operations two values with the
# result.
REALS = [(SUM, 3, -5, -2), (PROD, 3, -5, -15), (MAX, 3, -5, 3), (MIN, 3, -5, -5), (MIN, -5, 3, -5)]
LARGE = [(SUM, 1 << 100, 1 << 3, (1 << 100) + 8), (PROD, -(1 << 70), 3, -3 << 70)]
LOGICALS = [(LAND, 1, 0, 0), (LAND, 1, 1, 1), (LOR, 1, 0, 1), (LXOR, 1, 1, 0)]
FORTRAN: dict[str, tuple[int, Callable[[Any], bytes], list[tuple[int, Any, Any, Any]]]] = {
    "REAL16": (0x4C00102B, quadruple, REALS),
    "COMPLEX32": (
        0x4C00202C,
        complex_quadruple,
        [(SUM, 1 + 2j, 3 + 4j, 4 + 6j), (PROD, 1 + 2j, 3 + 4j, -5 + 10j)],
    ),
    "INTEGER16": (0x4C001032, integer(16), [*REALS, *LARGE]),
    **{
        f"LOGICAL{length}": (0x4C000047 + number + (length << 8), integer(length), LOGICALS)
        for number, length in enumerate((1, 2, 4, 8, 16))
    },
}


@pytest.mark.parametrize("name", FORTRAN)
def test_the_widest_types_of_fortran(name: str) -> None:
    handle, encoded, cases = FORTRAN[name]

    def work(mpi: Calls) -> None:
        for operation, left, right, result in cases:
            into = np.frombuffer(encoded(right) * 2, np.uint8).copy()
            data = np.frombuffer(encoded(left) * 2, np.uint8)
            mpi.Reduce_local(data_of(data), data_of(into), 2, handle, operation)
            assert into.tobytes() == encoded(result) * 2, (operation, left, right)
        for refused in (MINLOC, *((MAX,) if name == "COMPLEX32" else ())):
            code = mpi.code_of("Reduce_local", data_of(data), data_of(into), 2, handle, refused)
            assert code & CLASS_MASK == ERR_OP

    alone(work)


def test_values_of_16_bytes_in_external32() -> None:
    """Quadruple precision is as it is there, in the other order; long double becomes it."""

    def work(mpi: Calls) -> None:
        for handle, value in ((0x4C00102B, quadruple(-5)), (0x4C001032, integer(16)(-7))):
            data = np.frombuffer(value, np.uint8)
            packed, back = np.zeros(16, np.uint8), np.zeros(16, np.uint8)
            position = ctypes.c_long(0)
            there = ctypes.addressof(position)
            name = ctypes.cast(ctypes.c_char_p(b"external32"), ctypes.c_void_p)
            mpi.Pack_external(name, data_of(data), 1, handle, data_of(packed), 16, there)
            assert packed.tobytes() == value[::-1]
            position.value = 0
            mpi.Unpack_external(name, data_of(packed), 16, there, data_of(back), 1, handle)
            assert back.tobytes() == value

    alone(work)


LB, UB, INT = 0x4C000010, 0x4C000011, 0x4C000405


@pytest.mark.parametrize(
    ("parts", "bounds"),
    [
        ([(LB, -4), (INT, 0), (UB, 16)], (-4, 20)),
        ([(LB, 0), (INT, 4)], (0, 8)),
        ([(LB, 2), (INT, -4)], (2, 0)),
        ([(INT, -4), (UB, 2)], (-4, 6)),
        ([(INT, 4), (UB, 2)], (4, -2)),
    ],
    ids=["both", "lower", "lower above", "upper", "upper below"],
)
def test_bounds_of_mpi_1(parts: list[tuple[int, int]], bounds: tuple[int, int]) -> None:
    """Elements without data, which set the bounds of a structure (MPI 2.2, 4.1.6)."""

    def work(mpi: Calls) -> tuple[int, tuple[int, int]]:
        count = len(parts)
        lengths = (ctypes.c_int * count)(*count * [1])
        places = (ctypes.c_long * count)(*(place for _, place in parts))
        types = (ctypes.c_int * count)(*(handle for handle, _ in parts))
        made, size = ctypes.c_int(), ctypes.c_longlong()
        lower, extent = ctypes.c_long(), ctypes.c_long()
        mpi.Type_create_struct(count, lengths, places, types, made)
        mpi.Type_size_x(made.value, ctypes.addressof(size))
        mpi.Type_get_extent(made.value, ctypes.addressof(lower), ctypes.addressof(extent))
        mpi.Type_free(made)
        return size.value, (lower.value, extent.value)

    assert alone(work) == (4, bounds)
