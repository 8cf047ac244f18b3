"""A world of MPI without ranks, for programs that test what stands in front of it."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from shrimpmx.mpi.functions import FUNCTIONS as FUNCTIONS
from shrimpmx.mpi.functions import TABLE, Function
from shrimpmx.mpi.functions import TWINS as TWINS
from shrimpmx.mpi.library import library_path

CAPSULE = b"shrimpmx.mpi.world.table"
FIELDS = {function.name: number for number, function in enumerate(TABLE)}
# What ctypes passes for a type of MPI's; handles, but for files, and numbers are C's int.
LONG_TYPES = ("MPI_Aint", "MPI_Count", "MPI_Offset", "MPI_File")

mpi = ctypes.CDLL(str(library_path()))
# The same as mpi4py calls it here and there: with the GIL.
mpi_with_gil = ctypes.PyDLL(str(library_path()))
# A function that returns an error, whatever its arguments: no tool has begun.
FAILURE = int(mpi.MPI_T_finalize())
FAILING = ctypes.cast(mpi.MPI_T_finalize, ctypes.c_void_p).value or 0


def flag(function: str) -> int:
    """What a query with one result says, e.g. Finalized."""
    result = ctypes.c_int(-1)
    assert mpi[f"MPI_{function}"](ctypes.byref(result)) == 0
    return result.value


class Counts(ctypes.Structure):
    """A list of counts, and whether they are MPI_Count, or int."""

    _fields_ = (("numbers", ctypes.c_size_t), ("are_large", ctypes.c_int))


def argument_type(declaration: str) -> type[Any]:
    """The type of ctypes for an argument as C declares it."""
    if declaration.startswith("Counts "):
        return Counts
    is_long = re.search(r"[*\[]", declaration) or declaration.split()[0] in LONG_TYPES
    return ctypes.c_size_t if is_long else ctypes.c_int


def prototype(
    function: Function, kind: Callable[..., Any] = ctypes.CFUNCTYPE, of_table: bool = True
) -> Any:
    """The type of ctypes for pointers to such a function of the table, or of the library."""
    returns = ctypes.c_int if function.returns == "int" else ctypes.c_double
    declarations = function.table if of_table else function.declarations
    return kind(returns, *map(argument_type, declarations))


def address_of(capsule: object) -> int:
    """Where the table lies that a capsule has."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_size_t, (ctypes.py_object, ctypes.c_char_p)
    return int(get_pointer(capsule, CAPSULE))


def stub_world(
    functions: dict[str, Callable[..., int]],
    provided: int = 3,
    before: Callable[[int], object] = lambda required: None,
) -> None:
    """Put a module in the place of shrimpmx.mpi.world, whose table has `functions`; others fail.

    Its start calls `before` with the level of threads that MPI_Init asks for.
    """
    table = (ctypes.c_size_t * len(TABLE))(*[FAILING] * len(TABLE))
    make_capsule = ctypes.pythonapi.PyCapsule_New
    make_capsule.restype = ctypes.py_object
    make_capsule.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    capsule = make_capsule(ctypes.addressof(table), CAPSULE, None)
    pointers: list[object] = [table]
    for name, function in functions.items():
        number = FIELDS[name]
        pointer = prototype(TABLE[number])(function)
        pointers.append(pointer)
        table[number] = ctypes.cast(pointer, ctypes.c_void_p).value or 0

    def start(required: int, called: int) -> object:
        before(required)
        return capsule

    world: Any = ModuleType("shrimpmx.mpi.world")
    world.start, world.provided, world.kept = start, provided, pointers
    world.calls, world.clock, world.records = "", lambda: 0, lambda: 0
    sys.modules["shrimpmx.mpi.world"] = world
