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
    LARGE,
    NAMED,
    NUMBERED,
    OF_FRONT,
    OLDER,
    SHOWN,
    TABLE,
    TOOL,
    TOOL_OF_FRONT,
    TWINS,
    Function,
)
from shrimpmx.shared.counter_texts import LONGEST, OF_KIND

HERE = Path(__file__).parent
# Functions whose calls a trace has: they send, wait, or take part in what others do, too.
_TRACED = re.compile(
    r"(?!Type|Info|Group|Op_|Err|Session|Grequest|Keyval|File|.*(keyval|errhandler|get_info)).*"
    r"(send|recv|pready|parrived|probe|wait|test(any|all|some)?$|start|barrier|bcast|gather|scatter"
    r"|alltoall|reduce|scan|flush|fence|lock|complete|post|put$|get$|accumulate|_and_|_i?dup"
    r"|_create|split|_free$|merge|finalize)",
    re.IGNORECASE,
)
# Agents whose counters a rank reads through MPI_T: those of its node, and itself.
TOOL_KINDS = {
    "nic": "The NIC of the rank's node",
    "irq": "The interrupt handlers of the rank's node",
    "dma": "The DMA agents of the rank's node",
    "rank": "The rank's library and driver",
}
WAIT_TEXT = "How the rank's process waits"
# The fields of struct wait_account of layout.h, in their order.
WAIT_TEXTS = {
    "waits": "Waits for messages or memory.",
    "at_once": "Waits that found the data before any waiting.",
    "while_spinning": "Waits that found the data in a spin phase.",
    "timeouts": "Waits that ended at their deadline.",
    "spin_ns": "Time in spin phases, ns.",
    "yields": "Calls of sched_yield.",
    "blocks": "Sleeps, each of which a wake-up ended.",
    "races": "Sleeps that the data forestalled.",
    "system_calls": "System calls made to wait.",
    "interrupts_enabled": "Requests for an interrupt by a rank about to sleep.",
    "notifications": "Runs of the signal handler.",
}
NOTE = "Written by shrimpmx/mpi/generate.py from prototypes.py: change those."


def declared_arguments(function: Function) -> str:
    return ", ".join(function.declarations) or "void"


def _in_table(function: Function) -> str:
    return ", ".join(function.table) or "void"


def _called(function: Function, form: str) -> str:
    """C for the function that the program called, which may be the one that waits."""
    called = form.format(function.name)
    waits = [each.name for each in FUNCTIONS if each.waits_for == function.name]
    return f"request ? {called} : {form.format(waits[0])}" if waits else called


def _table_h() -> Iterator[str]:
    """The struct of the table, and each function's number."""
    yield f"/* {NOTE} */"
    yield "#ifndef SHRIMPMX_MPI_TABLE_H"
    yield "#define SHRIMPMX_MPI_TABLE_H"
    yield '#include "abi.h"'
    yield "/* A list of MPI_Count, or MPI_Aint, if they are large; else of int. */"
    yield "typedef struct { const void *numbers; int are_large; } Counts;"
    yield "struct mpi_table {"
    yield from (f"    {each.returns} (*{each.name})({_in_table(each)});" for each in TABLE)
    yield "};"
    yield "enum mpi_function {"
    yield from (f"    MPI_FUNCTION_{each.name}," for each in NUMBERED)
    yield "    MPI_FUNCTIONS,"
    yield f"    MPI_FUNCTION_FIRST_LARGE = MPI_FUNCTION_{TWINS[0].name}"
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
    yield f"# {NOTE}"
    yield 'cdef extern from "mpi/table.h" nogil:'
    yield from _cython_types()
    yield "    ctypedef struct Counts:"
    yield "        const void *numbers"
    yield "        int are_large"
    yield "    cdef struct mpi_table:"
    for each in TABLE:
        arguments = ", ".join(each.table)
        yield f"        {each.returns} (*{each.name})({arguments}) noexcept nogil"
    yield "    cdef enum:"
    yield from (f"        MPI_FUNCTION_{each.name}" for each in NUMBERED)
    yield "        MPI_FUNCTIONS"
    yield "        MPI_FUNCTION_FIRST_LARGE"


def _comm_of(function: Function, otherwise: str) -> str:
    """The communicator that a call is made on."""
    comms = [each for each in function.declarations if re.match(r"MPI_Comm \w", each)]
    return comms[0].split()[-1] if comms else otherwise


def _names_h() -> Iterator[str]:
    """The name of each function, by its number."""
    yield f"/* {NOTE} */"
    yield "static const char *const function_names[] = {"
    yield from (f'    "{name}",' for name in SHOWN)
    yield "};"


def _persistent_h() -> Iterator[str]:
    """Functions that describe a persistent collective: by the one that starts it, told not to."""
    yield f"/* {NOTE} */"
    yield '#include "table.h"'
    yield "static _Thread_local int describing;"
    yield "static const struct mpi_table *starters;"
    described = [each for each in TABLE if each.describes]
    for each in described:
        given = [name for name in each.arguments if name != "info"]
        yield f"static int describe_{each.name}({_in_table(each)})"
        yield "{ describing = 1;"
        yield f"  const int code = starters->{each.describes}({', '.join(given)});"
        yield "  describing = 0;"
        yield "  return code; }"
    yield "static void describe_fill(struct mpi_table *table) {"
    yield "    starters = table;"
    yield from (f"    table->{each.name} = describe_{each.name};" for each in described)
    yield "}"


def _traced_h() -> Iterator[str]:
    """Functions that keep each call, and pass it on to another table."""
    yield f"/* {NOTE} */"
    yield '#include "table.h"'
    yield '#include "tracing.h"'
    yield "static const struct mpi_table *untraced;"
    traced = [each for each in TABLE if _TRACED.match(each.name)]
    for each in traced:
        yield f"static int traced_{each.name}({_in_table(each)})"
        yield "{ struct traced_call call = call_begun(called);"
        yield f"  const int code = untraced->{each.name}({', '.join(each.arguments)});"
        yield "  call_ended(&call);"
        yield "  return code; }"
    yield "static void traced_fill(struct mpi_table *table, const struct mpi_table *of) {"
    yield "    untraced = of;"
    yield "    *table = *of;"
    yield from (f"    table->{each.name} = traced_{each.name};" for each in traced)
    yield "}"


def _calls_h() -> Iterator[str]:
    """The functions of the library that call the table, and those that stand there outside a run.

    front.c includes it; its own are OF_FRONT, and those outside a run that have no error code.
    """
    yield f"/* {NOTE} */"
    for each in TABLE:
        if each.returns == "int":
            yield f"static int outside_{each.name}({_in_table(each)})"
            name = _called(each, '"MPI_{}"')
            passed = f"return always()->{each.name}({', '.join(each.arguments)});"
            yield f"{{ {passed if each.is_always_there else f'called_outside({name});'} }}"
    yield "static const struct mpi_table outside_table = {"
    yield from (f"    .{each.name} = outside_{each.name}," for each in TABLE)
    yield "};"
    yield "static const struct mpi_table *table = &outside_table;"
    for of, kind, name in (("", "Comm", "comm"), ("_of_file", "File", "file")):
        yield f"static int null_argument{of}(MPI_{kind} {name}, int number) {{"
        yield "    const int code = ERR_ARG | (number + 1) << 8;"
        yield f"    if (state == RUNNING) table->{kind}_call_errhandler({name}, code);"
        yield "    return code;"
        yield "}"
    for each in (*FUNCTIONS, *TWINS):
        if each.name not in OF_FRONT:
            yield from _call(each)
    for other, name in (OLDER | LARGE).items():
        yield f"NAMED_AS({other}, {name})"
    yield from _tool_calls()


def _call(function: Function) -> Iterator[str]:
    """The function of the library, which looks for missing addresses before the table's does."""
    name = function.name
    yield f"static {function.returns} call_{name}({declared_arguments(function)})"
    yield f"{{ called = MPI_FUNCTION_{name};"
    if function.needed:
        missing = " || ".join(f"({condition})" for condition in function.needed.values())
        of, owner = "", _comm_of(function, "COMM_WORLD")
        if _is_of_files(function):
            of, owner = "_of_file", "fh" if "MPI_File fh" in function.declarations else "NULL"
        when = "" if function.is_always_there else " && state == RUNNING"
        yield f"  if (({missing}){when})"
        yield f"      return null_argument{of}({owner}, MPI_FUNCTION_{name});"
    before, given, after = _given(function)
    yield from (f"  {line}" for line in before)
    call = f"table->{function.entry}({', '.join([*given, *['NULL'] * bool(function.waits_for)])})"
    if function.made or after:
        yield f"  const {function.returns} code = {call};"
        yield "  if (code) {"
        yield from (f"      *{each} = {null:#x};" for each, null in function.made.items())
        yield "  } else {" if after else ""
        yield from (f"      {line}" for line in after)
        yield "  }"
        yield "  return code; }"
    else:
        yield f"  return {call}; }}"
    yield f"NAMES({name})"


def _given(function: Function) -> tuple[list[str], list[str], list[str]]:
    """C for the arguments of the table's function, and for the steps before and after the call."""
    before, given, after = [], [], []
    for name, declared, wanted in zip(
        function.arguments, function.declarations, function.table, strict=False
    ):
        kind = wanted.replace(name, "")
        if declared == wanted:
            given.append(name)
        elif wanted.startswith("Counts"):
            are_large = not declared.startswith("const int ")
            given.append(f"(Counts){{{name}, {int(are_large)}}}")
        elif "*" in wanted and declared.startswith("int "):
            before.append(f"{kind.strip('* ')} wide_{name} = {name} ? *{name} : 0;")
            given.append(f"&wide_{name}")
            after.append(f"*{name} = in_int(wide_{name});")
        else:
            given.append(f"({kind.strip()}){name}")
    return before, given, after


def _is_of_files(function: Function) -> bool:
    """Whether a file, or MPI_FILE_NULL, handles its errors."""
    return function.name.startswith(("File_", "Register_datarep"))


def _tool_calls() -> Iterator[str]:
    """The functions of the tool information interface: those that have nothing to show."""
    wrong = {"const char *name": "NAME", "int index": "INDEX"}
    for each in TOOL:
        yield f"static int call_{each.name}({declared_arguments(each)});"
        yield f"NAMES({each.name})"
        if each.name not in TOOL_OF_FRONT:
            yield f"static int call_{each.name}({declared_arguments(each)})"
            yield "{ if (!tools_are_there()) return T_ERR_NOT_INITIALIZED;"
            if each.declarations == ("int *number",):
                yield "  if (number) *number = 0;"
                yield "  return SUCCESS; }"
            else:
                yield f"  return T_ERR_INVALID_{wrong.get(each.declarations[0], 'HANDLE')}; }}"


def _tool_variables_h() -> Iterator[str]:
    """Performance variables: what agents count, and how this rank's process waits."""
    kinds = {**{kind: OF_KIND[kind] for kind in TOOL_KINDS}, "wait": WAIT_TEXTS}
    yield f"/* {NOTE} */"
    yield '#include "shared/counters.h"'
    yield "enum { AGENT_WAIT = AGENT_KINDS };"
    yield "static const struct tool_variable {"
    yield "    const char *name, *text;"
    yield "    int class, kind, number; /* enum agent_kind; among those of its kind */"
    yield "} tool_variables[] = {"
    for kind, texts in kinds.items():
        for number, (name, text) in enumerate(texts.items()):
            of = f"AGENT_{kind.upper()}, {number}"
            yield f'    {{"{kind}_{name}", "{text}", {_class_of(name)}, {of}}},'
    yield "};"
    yield "static const struct tool_category {"
    yield "    const char *name, *text;"
    yield "    int first, count; /* variables */"
    yield "} tool_categories[] = {"
    first = 0
    for kind, texts in kinds.items():
        yield f'    {{"{kind}", "{TOOL_KINDS.get(kind, WAIT_TEXT)}", {first}, {len(texts)}}},'
        first += len(texts)
    yield "};"
    yield f"enum {{ TOOL_VARIABLES = {first}, TOOL_CATEGORIES = {len(kinds)} }};"


def _class_of(name: str) -> int:
    """The class of the variable that counts `name`: MPI_T_PVAR_CLASS_*."""
    if name.endswith(LONGEST):
        return NUMBERS["T_PVAR_CLASS_HIGHWATERMARK"]
    return NUMBERS["T_PVAR_CLASS_" + ("TIMER" if name.endswith("_ns") else "COUNTER")]


def _mpi_h() -> Iterator[str]:
    """The header of programs."""
    yield "/* MPI for programs of C and C++, by the ABI of MPICH."
    yield f" * {NOTE} */"
    yield "#ifndef SHRIMPMX_MPI_H"
    yield "#define SHRIMPMX_MPI_H"
    yield "#ifdef __cplusplus"
    yield 'extern "C" {'
    yield "#endif"
    for name in ("abi.h", "tool_types.h"):
        text = re.sub(r"/\*.*?\*/", "", (HERE / name).read_text(), flags=re.S)
        yield from (line for line in text.splitlines() if line and not re.match("#(?!.*<)", line))
    yield "typedef MPI_Comm_copy_attr_function MPI_Copy_function;"
    yield "typedef MPI_Comm_delete_attr_function MPI_Delete_function;"
    yield "typedef MPI_Comm_errhandler_function MPI_Handler_function;"
    for name, value in (numbers() | NUMBERS).items():
        yield f"#define MPI_{name} {value if value < 0x1000000 else hex(value)}"
    for kind, handles in HANDLES.items():
        yield from (f"#define MPI_{name} ((MPI_{kind}){of:#x})" for name, of in handles.items())
    yield from (f"#define MPI_{name} {value}" for name, value in ADDRESSES.items())
    yield "extern int *const MPI_UNWEIGHTED, *const MPI_WEIGHTS_EMPTY;"
    yield "extern struct MPIR_T_pvar_handle_s *const MPI_T_PVAR_ALL_HANDLES;"
    yield "int MPIR_Dup_fn(int, int, void *, void *, void *, int *);"
    others = (replaced(BY_NAME[name], name=other) for other, name in (OLDER | LARGE).items())
    for each in (*NAMED, *TWINS, *others, *TOOL):
        arguments = (
            f"{declared_arguments(each)}, ..."
            if each.name == "Pcontrol"
            else declared_arguments(each)
        )
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
    "names.h": _names_h,
    "persistent.h": _persistent_h,
    "calls.h": _calls_h,
    "traced.h": _traced_h,
    "tool_variables.h": _tool_variables_h,
}
