"""Writes the C and Cython of the table of costs; setup.py calls it."""

from __future__ import annotations

from collections.abc import Iterator

from shrimpmx.costs.table import COSTS

_NOTE = "Written by shrimpmx/costs/generate.py from table.py: change those."


def _rows_h() -> Iterator[str]:
    """Each cost's number."""
    yield f"/* {_NOTE} */"
    yield "#ifndef SHRIMPMX_COSTS_ROWS_H"
    yield "#define SHRIMPMX_COSTS_ROWS_H"
    yield "enum cost_row {"
    yield from (f"    COST_{name}," for name in COSTS)
    yield "    COSTS_COUNT"
    yield "};"
    yield "#endif"


def _rows_pxd() -> Iterator[str]:
    """The same for Cython."""
    yield f"# {_NOTE}"
    yield "ctypedef unsigned int cost_row  # one of these"
    yield 'cdef extern from "costs/rows.h" nogil:'
    yield "    enum:"
    yield from (f"        COST_{name}" for name in COSTS)
    yield "        COSTS_COUNT"


# Written beside this module.
GENERATED = {"rows.h": _rows_h, "rows.pxd": _rows_pxd}
