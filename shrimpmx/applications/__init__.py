"""MPI programs of which the papers show results: ordinary mpi4py, for any MPI library.

Nothing here knows the emulated cluster; `shrimpmx mpirun -n 4 python -m shrimpmx.applications.nas
IS S` runs one on it, and another MPI's mpirun does the same beside it.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def refuse_without_mpi(program: str, error: Exception) -> NoReturn:
    """Says why mpi4py.MPI could not be imported, and ends with exit code 2."""
    if isinstance(error, ModuleNotFoundError):
        advice = "mpi4py is needed: pip install mpi4py"
    else:
        advice = (
            f"mpi4py cannot load an MPI library ({error}): start the program by shrimpmx mpirun, "
            "or name a library by MPI4PY_LIBMPI"
        )
    print(f"{program}: {advice}", file=sys.stderr)
    raise SystemExit(2)
