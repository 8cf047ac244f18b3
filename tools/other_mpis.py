"""Other MPIs, where Debian's packages mpich and openmpi-bin are installed, for mpi4py's wheel."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = Path("/usr/lib")


@dataclass(frozen=True)
class Mpi:
    """An MPI: the command that a number of ranks and a program follow, and its environment."""

    name: str
    command: tuple[str, ...]
    variables: dict[str, str]


def mpich(scratch: Path) -> Mpi | None:
    """MPICH. The wheel asks for libmpi.so.12, which Debian calls otherwise: a link in `scratch`."""
    command = shutil.which("mpiexec.mpich")
    library = next(LIBRARIES.glob("*/libmpich.so.12"), None)
    if command is None or library is None:
        return None
    link = scratch / "libmpi.so.12"
    link.symlink_to(library)
    paths = os.pathsep.join(filter(None, (str(scratch), os.environ.get("LD_LIBRARY_PATH"))))
    variables = {"MPI4PY_LIBMPI": str(link), "LD_LIBRARY_PATH": paths}
    return Mpi("MPICH", (command, "-n"), variables)


def open_mpi() -> Mpi | None:
    """Open MPI, told to yield its CPU while it waits: there may be more ranks than CPUs."""
    command = shutil.which("mpirun.openmpi")
    library = next(LIBRARIES.glob("*/libmpi.so.40"), None)
    if command is None or library is None:
        return None
    yields = ("--mca", "mpi_yield_when_idle", "1")
    allowed = {f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")}
    return Mpi(
        "Open MPI",
        (command, "--oversubscribe", "--bind-to", "none", *yields, "-n"),
        {"MPI4PY_LIBMPI": str(library), **allowed},
    )
