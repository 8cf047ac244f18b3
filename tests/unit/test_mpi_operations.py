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
MINLOC, MAXLOC, NO_OP = 0x5800000B, 0x5800000C, 0x5800000E
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
