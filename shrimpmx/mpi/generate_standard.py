"""Writes the second front: libmpi_abi.so.1's functions, which convert their arguments from types
and numbers of the standard ABI to MPICH's, and call the first front's (standard.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replaced

from shrimpmx.mpi import constants, standard
from shrimpmx.mpi.functions import (
    BY_NAME,
    FORTRAN_HANDLES,
    LARGE,
    NAMED,
    OLDER,
    STANDARD,
    TOOL,
    TWINS,
    Function,
)
from shrimpmx.mpi.generate import HERE, NOTE, declared_arguments, numbers

# Functions of libmpi.so.12 that the standard ABI has not: MPI 1's, and Fortran's for statuses.
_REMOVED = re.compile(r"Type_(extent|lb|ub|hindexed|hvector|struct)$|Address|Errhandler_(?!free)")
_FORTRAN = re.compile(r"Status_\w*f0?8?")
# Functions that standard.c has itself.
_OWN = {
    *("Get_version", "Pcontrol", "Op_create", "Op_create_c", "Grequest_start"),
    *("Register_datarep", "Register_datarep_c", "Type_get_contents", "Type_get_contents_c"),
    *("Comm_spawn", "Comm_spawn_multiple", "Comm_get_attr", "Win_get_attr"),
    *(f"Status_{does}_{name}" for does in ("get", "set") for name in ("source", "tag", "error")),
    *(f"{kind}_create_keyval" for kind in ("Comm", "Type", "Win")),
    *(f"{kind}_create_errhandler" for kind in ("Comm", "File", "Session", "Win")),
}
# Handles that a call takes, and leaves null or as others.
_CHANGED = re.compile(
    r"\w+_free(_keyval)?$|Wait$|Test$|Cancel$|Start$|(Mr|Imr)ecv|Type_commit$|Comm_disconnect$"
    r"|File_close$|Session_finalize$"
)
# What numbers mean, by the names of arguments, and by function and name where that says more.
_MEANINGS = {
    **dict.fromkeys(("source", "dest", "root", "target_rank", "rank"), "rank"),
    **dict.fromkeys(("rank_source", "rank_dest"), "rank"),
    "ranks1": "rank",
    **dict.fromkeys(("tag", "sendtag", "recvtag"), "tag"),
    **dict.fromkeys(("errorcode", "errorclass"), "error"),
    **dict.fromkeys(("comm_keyval", "type_keyval", "win_keyval"), "keyval"),
    **dict.fromkeys(("required", "provided"), "thread_level"),
    **dict.fromkeys(("amode", "assertion"), "modes"),
    **dict.fromkeys(("order", "combiner", "typeclass", "split_type", "whence")),
    "lock_type": "lock_type",
    "distribs": "distribution",
    "dargs": "distribution_argument",
    "verbosity": "verbosity",
    "var_class": "variable_class",
    "bind": "binding",
}
_RESULTS = {
    "Comm_compare": "comparison",
    "Group_compare": "comparison",
    "Topo_test": "topology",
}
# Lists whose elements are converted, and their lengths: the first that is an argument, or else an
# expression of C.
_LENGTHS = {
    "requests": ("count", "incount"),
    "statuses": ("count", "incount"),
    "types": ("count",),
    "sendtypes": ("sendbuf == ABI_IN_PLACE ? 0 : peers.to",),
    "recvtypes": ("peers.from",),
    "ranks1": ("n",),
    "distribs": ("ndims",),
    "dargs": ("ndims",),
}


def _is_standard(name: str) -> bool:
    return not (_REMOVED.match(name) or _FORTRAN.match(name))


# The functions of the library, without conversions of handles to integers.
EXPORTED = [each for each in (*NAMED, *TWINS, *TOOL) if _is_standard(each.name)]
ALIASES = {other: name for other, name in (OLDER | LARGE).items() if _is_standard(other)}
INTEGERS = [f"{handle}_{way}" for handle in FORTRAN_HANDLES for way in ("toint", "fromint")]


def _kind(handle: str) -> str:
    """The type of the handles that FORTRAN_HANDLES names."""
    return "Datatype" if handle == "Type" else handle


# -- Numbers of one ABI, and of the other.


def paired(of: Mapping[str, int], others: Mapping[str, int]) -> dict[int, int]:
    """What each number of `of` is in `others`; a number of `others` alone is in turn one of `of`,
    so that no number that means nothing in one ABI means something in the other.
    """
    pairs = {value: others[name] for name, value in of.items()}
    inverse = {other: value for value, other in pairs.items()}
    for value in sorted(inverse.keys() - pairs.keys()):
        end = inverse[value]
        while end in inverse:
            end = inverse[end]
        pairs[value] = end
    return pairs


def _mpich(names: Mapping[str, int]) -> dict[str, int]:
    known = numbers() | constants.NUMBERS
    return {name: known[name] for name in names}


def _switch(name: str, pairs: Mapping[int, int]) -> Iterator[str]:
    yield f"static inline int {name}(int number) {{"
    yield "    switch (number) {"
    yield from (f"    case {given}: return {found};" for given, found in pairs.items())
    yield "    default: return number;"
    yield "    }"
    yield "}"


def _of_handles(kind: str) -> Iterator[str]:
    predefined = standard.HANDLES[kind]
    known = constants.HANDLES[kind]
    pairs = {value: known[name] for name, value in predefined.items()}
    yield f"static inline MPI_{kind} in_{kind}(ABI_{kind} handle) {{"
    yield "    switch ((uintptr_t)handle) {"
    yield from (f"    case {value:#x}: return {mpich:#x};" for value, mpich in pairs.items())
    yield "    default: return in_handle(handle);"
    yield "    }"
    yield "}"
    yield f"static inline ABI_{kind} out_{kind}(MPI_{kind} handle) {{"
    yield "    switch ((unsigned)handle) {"
    yield from (
        f"    case {mpich & 0xFFFFFFFF:#x}: return (ABI_{kind}){value:#x};"
        for value, mpich in pairs.items()
    )
    yield "    default: return out_handle(handle);"
    yield "    }"
    yield "}"


def _types(prefix: str) -> Iterator[str]:
    """Handles and the status, with their names' prefix."""
    for kind in standard.HANDLES:
        yield f"typedef struct MPI_ABI_{kind} *{prefix}{kind};"
    yield "typedef struct {"
    yield "    int MPI_SOURCE, MPI_TAG, MPI_ERROR;"
    yield "    int MPI_internal[5];"
    yield f"}} {prefix}Status;"


def _standard_numbers_h() -> Iterator[str]:
    """Conversions of handles and of numbers: in_X to MPICH's ABI, out_X from it."""
    yield f"/* {NOTE} */"
    yield from _types("ABI_")
    yield f"enum {{ LAST_HANDLE = {standard.LAST_HANDLE:#x} }};"
    yield f"enum {{ ABI_FILE_NULL = {standard.HANDLES['File']['FILE_NULL']:#x} }};"
    for name in ("VERSION", "SUBVERSION", "ABI_VERSION", "ABI_SUBVERSION"):
        yield f"enum {{ STANDARD_{name} = {standard.OTHERS[name]} }};"
    yield "/* A handle of the program's; 0, which is none, of what is predefined elsewhere. */"
    yield "static inline int in_handle(const void *handle)"
    yield "{ return (uintptr_t)handle > LAST_HANDLE ? (int)(uintptr_t)handle : 0; }"
    yield "static inline void *out_handle(int handle)"
    yield "{ return (void *)(uintptr_t)(unsigned)handle; }"
    for kind in standard.HANDLES:
        if kind != "File":
            yield from _of_handles(kind)
    for meaning, of in (*standard.MEANINGS.items(), ("mode", standard.MODES)):
        mpich = _mpich(of)
        yield from _switch(f"in_{meaning}", paired(of, mpich))
        yield from _switch(f"out_{meaning}", paired(mpich, of))


# -- Functions.


@dataclass
class _Call:
    """C of a function that converts: declarations, and its steps before and after the call."""

    declared: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)  # whether it has failed or not
    if_done: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)


def _abi(declared: str) -> str:
    """The declaration with the types of the standard ABI."""
    kinds = "|".join((*standard.HANDLES, "Status"))
    return re.sub(rf"\bMPI_({kinds})\b", r"ABI_\1", declared)


def _convert(function: Function, call: _Call, declared: str, name: str) -> None:
    """Add an argument to the call."""
    call.declared.append(_abi(declared))
    handle = re.fullmatch(r"(const )?MPI_(\w+) (\*?)\w+", declared)
    kind, is_constant, points = "", False, False
    if handle and handle[2] in (*standard.HANDLES, "Status"):
        is_constant, kind, points = bool(handle[1]), handle[2], bool(handle[3])
    meaning = _RESULTS.get(function.name) if name == "result" else _meaning(name)
    if name in _LENGTHS and (kind or meaning):
        _convert_list(function, call, name, kind or "int", is_constant, meaning)
    elif kind == "Status":
        _convert_status(function, call, name, is_constant)
    elif kind and not points:
        call.given.append(f"in_{kind}({name})")
    elif kind and name == "datatypes":
        call.given.append(f"(MPI_Datatype *){name}")  # a tool's, which gets none
    elif kind:
        _convert_handle(function, call, name, kind)
    elif meaning and declared == f"int {name}" and function.name != "Abort":
        call.given.append(f"in_{meaning}({name})")
    elif meaning and declared == f"int *{name}" and _CHANGED.match(function.name):
        call.before.append(f"int inner_{name} = {name} ? in_{meaning}(*{name}) : 0;")
        call.given.append(f"{name} ? &inner_{name} : NULL")
        call.after.append(f"if ({name}) *{name} = out_{meaning}(inner_{name});")
    elif meaning and declared == f"int *{name}":
        call.given.append(name)
        call.if_done.append(f"if ({name}) *{name} = out_{meaning}(*{name});")
    else:
        call.given.append(_address(function, declared, name))
        if name == "buffer_addr":
            call.if_done.append(f"*(void **){name} = out_buffer(*(void **){name});")
        elif name == "ranks2":
            call.if_done.append(f"for (int i = 0; i < n; i++) {name}[i] = out_rank({name}[i]);")


def _meaning(name: str) -> str | None:
    return (_MEANINGS[name] or name) if name in _MEANINGS else None


def _address(function: Function, declared: str, name: str) -> str:
    """What stands for an address, or another argument that may stand for something else."""
    if name in ("sendbuf", "recvbuf", "buffer") and "*" in declared:
        return f"in_buffer({name})"
    if name in ("sourceweights", "destweights", "weights"):
        return f"in_weights({name})"
    if function.name == "File_set_view" and name == "disp":
        return f"in_displacement({name})"
    if declared == f"MPI_T_pvar_handle {name}":
        return f"in_pvar_handle({name})"
    return name


def _convert_handle(function: Function, call: _Call, name: str, kind: str) -> None:
    """A handle that the call makes, changes or finds."""
    changes = _CHANGED.match(function.name) and name not in function.made
    first = f"{name} ? in_{kind}(*{name}) : 0" if changes else "0"
    call.before.append(f"MPI_{kind} inner_{name} = {first};")
    call.given.append(f"{name} ? &inner_{name} : NULL")
    given_back = call.after if changes or name in function.made else call.if_done
    given_back.append(f"if ({name}) *{name} = out_{kind}(inner_{name});")


def _convert_status(function: Function, call: _Call, name: str, is_constant: bool) -> None:
    if is_constant or function.name.startswith("Status_set"):
        call.before.append(f"MPI_Status inner_{name};")
        call.before.append(f"if ({name}) inner_{name} = in_status({name});")
        call.given.append(f"{name} ? &inner_{name} : NULL")
    else:
        call.before.append(f"MPI_Status inner_{name} = unset_status;")
        call.given.append(f"{name} ? &inner_{name} : NO_STATUS")
    if not is_constant:
        call.after.append(f"if ({name}) out_status(&inner_{name}, {name});")


def _convert_list(
    function: Function, call: _Call, name: str, kind: str, is_constant: bool, meaning: str | None
) -> None:
    """A list: on the stack, or in memory of its own if it is long."""
    lengths = _LENGTHS[name]
    length = next((each for each in lengths if each in function.arguments), lengths[0])
    kind_of = f"MPI_{kind}" if kind != "int" else "int"
    call.before.append(f"LIST({kind_of}, {name}, {length});")
    call.lists.append(name)
    each = f"for (int64_t i = 0; i < length_{name}; i++)"
    if kind == "Status":
        call.before.append(f"{each} inner_{name}[i] = unset_status;")
        call.given.append(f"{name} ? inner_{name} : NO_STATUS")
        call.after.append(f"{each} out_status(&inner_{name}[i], &{name}[i]);")
        return
    call.before.append(f"{each} inner_{name}[i] = in_{meaning or kind}({name}[i]);")
    call.given.append(f"{name} ? inner_{name} : NULL")
    if kind == "Request" and not is_constant:
        call.after.append(f"{each} {name}[i] = out_{kind}(inner_{name}[i]);")


def _function(function: Function) -> Iterator[str]:
    call = _Call()
    for name, declared in zip(function.arguments, function.declarations, strict=True):
        _convert(function, call, declared, name)
    yield f"static int abi_{function.name}({', '.join(call.declared) or 'void'}) {{"
    if call.lists:
        yield "    int lacks_memory = 0;"
    if "sendtypes" in function.arguments:
        finds = "neighbors" if "eighbor" in function.name else "ranks"
        yield "    struct peers peers;"
        yield f"    called = MPI_FUNCTION_{function.name};"
        yield f"    const int failed = find_{finds}(in_Comm(comm), &peers);"
        yield "    if (failed) {"
        if function.made:
            yield "        if (request) *request = out_Request(0x2c000000);"
        yield "        return out_error(failed);"
        yield "    }"
    yield from (f"    {line}" for line in call.before)
    made = f"call_{function.name}({', '.join(call.given)})"
    if call.lists:
        made = f"lacks_memory ? no_memory(MPI_FUNCTION_{function.name}) : {made}"
    yield f"    const int code = {made};"
    yield from (f"    {line}" for line in call.after)
    if call.if_done:
        yield "    if (code == SUCCESS) {"
        yield from (f"        {line}" for line in call.if_done)
        yield "    }"
    yield from (f"    DROP({name});" for name in call.lists)
    yield "    return out_error(code);"
    yield "}"
    yield f"STANDARD_NAMES({function.name})"


def _standard_calls_h() -> Iterator[str]:
    """The functions that convert, without standard.c's own."""
    yield f"/* {NOTE} */"
    for each in EXPORTED:
        if each.returns == "double":
            yield f"STANDARD_ALIAS({each.name}, call_{each.name})"
        elif each.name not in _OWN:
            yield from _function(each)
    for handle in FORTRAN_HANDLES:
        kind = _kind(handle)
        yield f"static int abi_{handle}_toint(ABI_{kind} handle)"
        yield "{ return (int)(uintptr_t)handle; }"
        yield f"STANDARD_NAMES({handle}_toint)"
        yield f"static ABI_{kind} abi_{handle}_fromint(int handle)"
        yield "{ return out_handle(handle); }"
        yield f"STANDARD_NAMES({handle}_fromint)"


def _standard_aliases_h() -> Iterator[str]:
    """Other names of the same functions."""
    yield f"/* {NOTE} */"
    yield from (f"STANDARD_ALIAS({other}, abi_{name})" for other, name in ALIASES.items())


# -- The header of programs.


def _mpi_h() -> Iterator[str]:
    yield "/* MPI for programs of C and C++, by the standard ABI of MPI 5."
    yield f" * {NOTE} */"
    yield "#ifndef SHRIMPMX_STANDARD_MPI_H"
    yield "#define SHRIMPMX_STANDARD_MPI_H"
    yield "#include <stdint.h>"
    yield "#ifdef __cplusplus"
    yield 'extern "C" {'
    yield "#endif"
    yield "typedef intptr_t MPI_Aint;"
    yield "typedef int64_t MPI_Offset, MPI_Count;"
    yield from _types("MPI_")
    for kind, values in standard.ENUMERATIONS.items():
        numbered = ", ".join(f"MPI_{name} = {value}" for name, value in values.items())
        yield f"typedef enum {{ {numbered} }} MPI_{kind};"
    for name in ("abi.h", "tool_types.h"):
        text = re.sub(r"/\*.*?\*/", "", (HERE / name).read_text(), flags=re.S)
        yield from re.findall(r"^typedef (?:struct \w+ \*MPI_T_\w+;|[^;{]*\);)", text, re.M)
    yield "typedef MPI_Comm_copy_attr_function MPI_Copy_function;"
    yield "typedef MPI_Comm_delete_attr_function MPI_Delete_function;"
    for kind in ("Comm", "File", "Win", "Session"):
        yield f"typedef MPI_{kind}_errhandler_function MPI_{kind}_errhandler_fn;"
    yield from (f"#define MPI_{name} {value}" for name, value in standard.NUMBERS.items())
    for kind, handles in standard.HANDLES.items():
        yield from (f"#define MPI_{name} ((MPI_{kind}){of:#x})" for name, of in handles.items())
    addresses = constants.ADDRESSES | standard.ADDRESSES
    del addresses["FILE_NULL"]
    yield from (f"#define MPI_{name} {value}" for name, value in addresses.items())
    others = (replaced(BY_NAME[name], name=other) for other, name in ALIASES.items())
    for each in (*EXPORTED, *others, *STANDARD):
        arguments = declared_arguments(each) + (", ..." if each.name == "Pcontrol" else "")
        yield from (f"{each.returns} {first}MPI_{each.name}({arguments});" for first in ("", "P"))
    for first in ("", "P"):
        for way in ("add", "diff"):
            yield f"MPI_Aint {first}MPI_Aint_{way}(MPI_Aint, MPI_Aint);"
        for handle in FORTRAN_HANDLES:
            yield f"int {first}MPI_{handle}_toint(MPI_{_kind(handle)});"
            yield f"MPI_{_kind(handle)} {first}MPI_{handle}_fromint(int);"
    yield "#ifdef __cplusplus"
    yield "}"
    yield "#endif"
    yield "#endif"


# Written beside this module.
GENERATED = {
    "include/abi/mpi.h": _mpi_h,
    "standard_numbers.h": _standard_numbers_h,
    "standard_calls.h": _standard_calls_h,
    "standard_aliases.h": _standard_aliases_h,
}
