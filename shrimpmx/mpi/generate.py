"""Writes the C and Cython of the function table from the list of functions; setup.py calls it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace as replaced
from pathlib import Path

from shrimpmx.mpi.constants import ADDRESSES, HANDLES, NUMBERS
from shrimpmx.mpi.functions import (
    BY_NAME,
    FORTRAN_HANDLES,
    FUNCTIONS,
    NULL_HANDLES,
    NUMBERED,
    OLDER,
    TABLE,
    Function,
)

HERE = Path(__file__).parent
_NOTE = "Written by shrimpmx/mpi/generate.py from prototypes.py: change those."


def _arguments(function: Function) -> str:
    return ", ".join(function.declarations) or "void"


def _called(function: Function, form: str) -> str:
    """C for the function that the program called, which may be the one that waits."""
    called = form.format(function.name)
    waits = [each.name for each in FUNCTIONS if each.waits_for == function.name]
    return f"request ? {called} : {form.format(waits[0])}" if waits else called


def _table_h() -> Iterator[str]:
    """The struct of the table, and each function's number."""
    yield f"/* {_NOTE} */"
    yield "#ifndef SHRIMPMX_MPI_TABLE_H"
    yield "#define SHRIMPMX_MPI_TABLE_H"
    yield '#include "abi.h"'
    yield "struct mpi_table {"
    yield from (f"    {each.returns} (*{each.name})({_arguments(each)});" for each in TABLE)
    yield "};"
    yield "enum mpi_function {"
    yield from (f"    MPI_FUNCTION_{each.name}," for each in NUMBERED)
    yield "    MPI_FUNCTIONS"
    yield "};"
    yield "#endif"


def _cython_types() -> Iterator[str]:
    """The types of abi.h as Cython declares them."""
    text = re.sub(r"/\*.*?\*/", "", (HERE / "abi.h").read_text(), flags=re.S)
    for kind, names in re.findall(r"^typedef (int|long long) ([^;(]+);", text, re.M):
        yield from (f"    ctypedef {kind} {name.strip()}" for name in names.split(","))
    yield "    ctypedef long MPI_Aint"
    yield "    cdef struct mpi_file"
    yield "    ctypedef mpi_file *MPI_File"
    for fields, name in re.findall(r"^typedef struct \{(.*?)\} (\w+);", text, re.M | re.S):
        yield f"    ctypedef struct {name}:"
        yield from (f"        {field.strip()}" for field in fields.split(";") if field.strip())
    for signature in re.findall(r"^typedef ([^;]+\));", text, re.M):
        yield f"    ctypedef {signature} noexcept nogil"


def _table_pxd() -> Iterator[str]:
    """The table's header for Cython."""
    yield f"# {_NOTE}"
    yield 'cdef extern from "mpi/table.h" nogil:'
    yield from _cython_types()
    yield "    cdef struct mpi_table:"
    for each in TABLE:
        arguments = ", ".join(each.declarations)
        yield f"        {each.returns} (*{each.name})({arguments}) noexcept nogil"
    yield "    cdef enum:"
    yield from (f"        MPI_FUNCTION_{each.name}" for each in NUMBERED)
    yield "        MPI_FUNCTIONS"


def _comm_of(function: Function, otherwise: str) -> str:
    """The communicator that a call is made on."""
    comms = [each for each in function.declarations if re.match(r"MPI_Comm \w", each)]
    return comms[0].split()[-1] if comms else otherwise


def _refused_h() -> Iterator[str]:
    """A table of functions that refuse: an error of the communicator's, or of none."""
    yield f"/* {_NOTE} */"
    yield '#include "table.h"'
    yield "#define MPI_ERR_UNSUPPORTED_OPERATION 44"
    yield "static int (*refusal_raise)(MPI_Comm comm, int code);"
    yield "static int refuse(MPI_Comm comm, int number) {"
    yield "    const int code = MPI_ERR_UNSUPPORTED_OPERATION | (number + 1) << 8;"
    yield "    return refusal_raise ? refusal_raise(comm, code) : code;"
    yield "}"
    for each in TABLE:
        yield f"static {each.returns} refused_{each.name}({_arguments(each)})"
        comm = _comm_of(each, f"{NULL_HANDLES['MPI_Comm']:#x}")
        yield f"{{ return refuse({comm}, {_called(each, 'MPI_FUNCTION_{}')}); }}"
    yield "static const struct mpi_table refused_table = {"
    yield from (f"    .{each.name} = refused_{each.name}," for each in TABLE)
    yield "};"
    yield "static const char *const function_names[] = {"
    yield from (f'    "MPI_{each.name}",' for each in NUMBERED)
    yield "};"
    yield "static const char *const function_advice[] = {"
    yield from (f'    "{each.advice}",' for each in NUMBERED)
    yield "};"


def _calls_h() -> Iterator[str]:
    """The functions of the library that call the table, and those that stand there outside a run.

    front.c includes it; its own are MPI_Finalize and MPI_Pcontrol, and those outside a run that
    have no error code.
    """
    yield f"/* {_NOTE} */"
    for each in TABLE:
        if each.returns == "int":
            yield f"static int outside_{each.name}({_arguments(each)})"
            name = _called(each, '"MPI_{}"')
            yield f"{{ called_outside({name}); }}"
    yield "static const struct mpi_table outside_table = {"
    yield from (f"    .{each.name} = outside_{each.name}," for each in TABLE)
    yield "};"
    yield "static const struct mpi_table *table = &outside_table;"
    yield "static int null_argument(MPI_Comm comm, int number) {"
    yield "    const int code = ERR_ARG | (number + 1) << 8;"
    yield "    table->Comm_call_errhandler(comm, code);"
    yield "    return code;"
    yield "}"
    for each in FUNCTIONS:
        if each.name not in ("Finalize", "Pcontrol"):
            yield from _call(each)
    for older, name in OLDER.items():
        for first in ("", "P"):
            alias = f'__attribute__((alias("MPI_{name}")))'
            yield f"EXPORTED extern __typeof__(MPI_{name}) {first}MPI_{older} {alias};"


def _call(function: Function) -> Iterator[str]:
    """The function of the library, which looks for missing addresses before the table's does."""
    name = function.name
    yield f"EXPORTED {function.returns} MPI_{name}({_arguments(function)})"
    yield f"{{ called = MPI_FUNCTION_{name};"
    if function.needed:
        missing = " || ".join(f"({condition})" for condition in function.needed.values())
        comm = _comm_of(function, "COMM_WORLD")
        yield f"  if (({missing}) && state == RUNNING)"
        yield f"      return null_argument({comm}, MPI_FUNCTION_{name});"
    given = [*function.arguments, "NULL"] if function.waits_for else function.arguments
    call = f"table->{function.waits_for or name}({', '.join(given)})"
    if function.made:
        yield f"  const int code = {call};"
        yield "  if (code) {"
        yield from (f"      *{each} = {null:#x};" for each, null in function.made.items())
        yield "  }"
        yield "  return code; }"
    else:
        yield f"  return {call}; }}"
    yield f"PROFILED({name})"


def _mpi_h() -> Iterator[str]:
    """The header of programs."""
    yield "/* MPI 3.1 for programs of C and C++, by the ABI of MPICH."
    yield f" * {_NOTE} */"
    yield "#ifndef SHRIMPMX_MPI_H"
    yield "#define SHRIMPMX_MPI_H"
    yield "#ifdef __cplusplus"
    yield 'extern "C" {'
    yield "#endif"
    abi = re.sub(r"/\*.*?\*/", "", (HERE / "abi.h").read_text(), flags=re.S)
    yield from (line for line in abi.splitlines() if line and not re.match("#(?!include)", line))
    yield "typedef MPI_Comm_copy_attr_function MPI_Copy_function;"
    yield "typedef MPI_Comm_delete_attr_function MPI_Delete_function;"
    yield "typedef MPI_Comm_errhandler_function MPI_Handler_function;"
    for name, value in (numbers() | NUMBERS).items():
        yield f"#define MPI_{name} {value if value < 0x1000000 else hex(value)}"
    for kind, handles in HANDLES.items():
        yield from (f"#define MPI_{name} ((MPI_{kind}){of:#x})" for name, of in handles.items())
    yield from (f"#define MPI_{name} {value}" for name, value in ADDRESSES.items())
    yield "extern int *const MPI_UNWEIGHTED, *const MPI_WEIGHTS_EMPTY;"
    yield "int MPIR_Dup_fn(int, int, void *, void *, void *, int *);"
    older = (replaced(BY_NAME[name], name=older) for older, name in OLDER.items())
    for each in (*NUMBERED, *older):
        arguments = f"{_arguments(each)}, ..." if each.name == "Pcontrol" else _arguments(each)
        for first in ("", "P"):
            yield f"{each.returns} {first}MPI_{each.name}({arguments});"
    for first in ("", "P"):
        for way in ("add", "diff"):
            yield f"MPI_Aint {first}MPI_Aint_{way}(MPI_Aint, MPI_Aint);"
        for handle in FORTRAN_HANDLES:
            kind = f"MPI_{'Datatype' if handle == 'Type' else handle}"
            yield f"MPI_Fint {first}MPI_{handle}_c2f({kind});"
            yield f"{kind} {first}MPI_{handle}_f2c(MPI_Fint);"
    yield "#ifdef __cplusplus"
    yield "}"
    yield "#endif"
    yield "#endif"


def numbers() -> dict[str, int]:
    """The constants of abi.pxd that are no handles, without MPI_."""
    found: dict[str, int] = {}
    handles = {name for of in HANDLES.values() for name in of}
    for block in re.findall(r"^cdef enum:\n((?:    .*\n)+)", (HERE / "abi.pxd").read_text(), re.M):
        value = 0
        for name, given in re.findall(r"MPI_(\w+)(?: = (\S+))?", block):
            value = int(given, 0) if given else value + 1
            found[name] = value
    return {name: value for name, value in found.items() if name not in handles}


# Written beside this module, in an order in which each includes those before it.
GENERATED = {
    "include/mpi.h": _mpi_h,
    "table.h": _table_h,
    "table.pxd": _table_pxd,
    "refused.h": _refused_h,
    "calls.h": _calls_h,
}
