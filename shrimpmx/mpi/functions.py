"""The functions of MPI that the libraries have, from the list of their prototypes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from shrimpmx.mpi.prototypes import (
    FRONT_PROTOTYPES,
    LANGUAGE_PROTOTYPES,
    PROTOTYPES,
    STANDARD_PROTOTYPES,
    TOOL_PROTOTYPES,
)

# Lists, which may be NULL if they are empty, and their lengths: the first of the expressions whose
# names are arguments of the call, too. Those of collective calls count at some ranks only.
_LISTS = {
    **dict.fromkeys(("requests", "statuses"), ("count", "incount")),
    **dict.fromkeys(("blocklengths", "displacements", "types"), ("count",)),
    **dict.fromkeys(("dims", "periods", "coords"), ("ndims", "maxdims")),
    **dict.fromkeys(("gsizes", "distribs", "dargs", "psizes"), ("ndims",)),
    **dict.fromkeys(("sizes", "subsizes", "starts"), ("ndims",)),
    **dict.fromkeys(("ranks", "ranks1", "ranks2", "ranges", "degrees"), ("n",)),
    "sources": ("indegree", "maxindegree", "n"),
    "destinations": ("outdegree", "maxoutdegree"),
    "sourceweights": ("indegree",),
    "destweights": ("outdegree",),
    "weights": ("n",),
    "indices": ("incount", "maxindex", "nnodes"),
    "edges": ("maxedges", "nnodes > 0 ? indices[nnodes - 1] : 0"),
    "neighbors": ("maxneighbors",),
    "integers": ("max_integers",),
    "addresses": ("max_addresses",),
    "large_counts": ("max_large_counts",),
    "datatypes": ("max_datatypes",),
    "partitions": ("length",),
    **dict.fromkeys(("command", "commands", "errcodes", "pset_name", "text"), ()),
}
# Arguments without a type that a call writes to.
_ADDRESSES = ("baseptr", "buffer_addr")
# Functions that it cannot do without.
_FUNCTIONS = ("user_fn", "errhandler_fn", "query_fn", "free_fn", "cancel_fn")
# The handles that stand for nothing: what a call that fails leaves where it would have made one.
NULL_HANDLES = {
    "MPI_Comm": 0x04000000,
    "MPI_Datatype": 0x0C000000,
    "MPI_Group": 0x08000000,
    "MPI_Info": 0x1C000000,
    "MPI_Request": 0x2C000000,
}
# Functions of the table that a program may call at any time (MPI 4.1, 11.4.1), and beginnings of
# their names: the first of them joins the run.
_ALWAYS = re.compile(
    r"Info_|Session_create_errhandler|Errhandler_free|Error_|Add_error_|Remove_error_"
)
# Functions of the table that front.c calls itself.
OF_FRONT = ("Finalize", "Pcontrol", "Session_init", "Session_finalize")
# Functions of front.c with another type of result.
FRONT_OTHERS = ("Aint_add", "Aint_diff")
# Names of MPI 1 for functions of the table with the same arguments.
OLDER = {
    "Address": "Get_address",
    "Attr_delete": "Comm_delete_attr",
    "Attr_get": "Comm_get_attr",
    "Attr_put": "Comm_set_attr",
    "Errhandler_create": "Comm_create_errhandler",
    "Errhandler_get": "Comm_get_errhandler",
    "Errhandler_set": "Comm_set_errhandler",
    "Keyval_create": "Comm_create_keyval",
    "Keyval_free": "Comm_free_keyval",
    "Type_hindexed": "Type_create_hindexed",
    "Type_hvector": "Type_create_hvector",
    "Type_struct": "Type_create_struct",
}
# Those of large counts whose twin has a function of MPI 3 with the same arguments.
LARGE = {
    "Get_elements_c": "Get_elements_x",
    "Status_set_elements_c": "Status_set_elements_x",
    "Type_get_extent_c": "Type_get_extent_x",
    "Type_get_true_extent_c": "Type_get_true_extent_x",
    "Type_size_c": "Type_size_x",
}
# Handles with functions to and from Fortran, X_c2f and X_f2c, which front.c has as well.
FORTRAN_HANDLES = (
    *("Comm", "Errhandler", "File", "Group", "Info"),
    *("Message", "Op", "Request", "Session", "Type", "Win"),
)


@dataclass(frozen=True)
class Function:
    """A function of MPI: its name without MPI_, and its arguments as C declares them."""

    name: str
    declarations: tuple[str, ...]
    returns: str = "int"
    waits_for: str = ""  # the function of the table that it calls without a request
    starts: bool = False  # it makes the request that is its last argument
    describes: str = ""  # the function of the table that starts what it makes a request of
    table: tuple[str, ...] = ()  # the arguments of the table's function, for counts of any size
    large: tuple[str, ...] = ()  # the arguments of its twin for large counts, if there is one
    entry: str = ""  # the function of the table that it calls

    @property
    def twin(self) -> Function:
        """The same function for large counts."""
        return replace(self, name=f"{self.name}_c", declarations=self.large, large=())

    @property
    def arguments(self) -> list[str]:
        """The names of the arguments."""
        return [re.sub(r"\[.*", "", each).split()[-1].lstrip("*") for each in self.declarations]

    @property
    def needed(self) -> dict[str, str]:
        """Addresses that the call needs, of results, texts and lists: when one is missing, in C."""
        found = {
            name: self._missing(name, declared)
            for name, declared in zip(self.arguments, self.declarations, strict=True)
        }
        return {name: condition for name, condition in found.items() if condition}

    def _missing(self, name: str, declared: str) -> str:
        """Of data nothing is said here: where they count, they may lie at any address."""
        if name == "port_name" and "root" in self.arguments:
            return ""  # of the root's alone
        if name in _LISTS:
            for length in _LISTS[name]:
                if set(re.findall(r"[a-z]\w+|n", length)) <= set(self.arguments):
                    return f"({length}) > 0 && !{name}"
            return ""
        if re.match(r"const MPI_Status", declared) or self.name.startswith("Status_set"):
            return f"(intptr_t){name} < 2" if name == "status" else ""  # nor MPI_STATUS_IGNORE
        needed = (
            re.fullmatch(r"(?!void|\w+_function)\w+ \*\w+|const char \*\w+", declared)
            or name in (*_ADDRESSES, *_FUNCTIONS)
            or (name == "attribute_val" and "_get_attr" in self.name)
        )
        return f"!{name}" if needed else ""

    @property
    def made(self) -> dict[str, int]:
        """The handles that the call makes: each argument with what it is if there is none."""
        pointed = [each.split(" *") for each in self.declarations if " *" in each]
        return {
            name: NULL_HANDLES[kind]
            for kind, name in pointed
            if kind in NULL_HANDLES
            and (
                name.startswith(("new", "comm_", "intercomm"))
                or (name == "request" and self.starts)
            )
        }

    @property
    def is_always_there(self) -> bool:
        """Whether a program may call it before MPI_Init, and after MPI_Finalize."""
        return _ALWAYS.match(self.name) is not None


def _parse(text: str) -> list[Function]:
    functions = []
    for names, arguments in re.findall(r"([^()]+)\(([^()]*)\)", text):
        # A word that begins with a capital letter is a type of MPI's.
        prefixed = re.sub(r"\b(?=[A-Z])", "MPI_", " ".join(arguments.split()))
        marked = prefixed.split(", ") if prefixed else []
        plain = tuple(re.sub(r"[+^]", "", each) for each in marked)
        large = tuple(_large(each) for each in marked)
        returns = "double" if "double" in names else "int"
        for mark, name in re.findall(r"([+*]?)(\w+)", names.replace("double", "")):
            started = f"I{name[0].lower()}{name[1:]}" if mark == "*" else ""
            more: tuple[str, ...] = (_REQUEST,) if mark == "+" else ()
            kinds = [(name, more, started, "")]
            if started:
                described = (f"{name}_init", ("MPI_Info info", _REQUEST), "", started)
                kinds = [(started, (_REQUEST,), "", ""), *kinds, described]
            for kind, more, waits_for, describes in kinds:
                starts, twin = _REQUEST in more, large + more if large != plain else ()
                table = tuple(map(_wide, plain, large)) + more
                functions.append(
                    Function(
                        *(kind, plain + more, returns, waits_for, starts, describes),
                        *(table, twin, waits_for or kind),
                    )
                )
    return functions


_REQUEST = "MPI_Request *request"


def _large(marked: str) -> str:
    """The argument of a function for large counts, of which `marked` has the marks."""
    return re.sub(r"int\^", "MPI_Aint", re.sub(r"\w+\+", "MPI_Count", marked))


def _wide(plain: str, large: str) -> str:
    """The argument of the table's function: a list of counts may be of either kind."""
    return re.sub(r"const \w+ \*", "Counts ", large) if plain != large else plain


FUNCTIONS = _parse(PROTOTYPES)
FRONT = _parse(FRONT_PROTOTYPES)
TOOL = _parse(TOOL_PROTOTYPES.replace("!", ""))
TOOL_OF_FRONT = tuple(f"T_{name}" for name in re.findall(r"\bT_(\w+)!", TOOL_PROTOTYPES))
LANGUAGES = _parse(LANGUAGE_PROTOTYPES)
STANDARD = _parse(STANDARD_PROTOTYPES)
# Those that have a number; LANGUAGES cannot be called by a name, and twins are the last.
NAMED = (*FUNCTIONS, *FRONT)
TWINS = tuple(function.twin for function in FUNCTIONS if function.large)
NUMBERED = (*NAMED, *LANGUAGES, *STANDARD, *TWINS)
# By their numbers, how errors and traces name them: twins, which mpi4py calls where there are any,
# as the functions that they belong to.
SHOWN = (
    *(f"MPI_{function.name}" for function in (*NAMED, *LANGUAGES, *STANDARD)),
    *(f"MPI_{function.name}" for function in FUNCTIONS if function.large),
)
# The functions of the table, in the order of its fields.
TABLE = [*(function for function in FUNCTIONS if not function.waits_for), *LANGUAGES]
BY_NAME = {function.name: function for function in FUNCTIONS}
# Every function of libmpi.so.12, without MPI_.
EXPORTED = (
    *(function.name for function in (*NAMED, *TWINS, *TOOL)),
    *FRONT_OTHERS,
    *OLDER,
    *LARGE,
    *(f"{handle}_{way}" for handle in FORTRAN_HANDLES for way in ("c2f", "f2c")),
)
