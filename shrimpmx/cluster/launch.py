"""How the program of a rank is started, and whether it can be."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shrimpmx.errors import InputError

# Ends with this code if there is no mpi4py.
NO_MPI4PY = 7
FIND_MPI4PY = f"""
import importlib.util
raise SystemExit(0 if importlib.util.find_spec("mpi4py") else {NO_MPI4PY})
"""
FIND_LIMIT_S = 5.0


@dataclass(frozen=True)
class Launch:
    """How the program of an MPI rank is started.

    `environment` is what it gets beside the caller's variables, `directory` where it starts, ""
    where the caller is. `stdin` is the file that it reads; "": the caller's own input. `stdout`
    is the file that its output is added to; "": the caller's own. `tagged`: each line of its output
    begins with the rank.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""
    stdin: str = os.devnull
    stdout: str = ""
    tagged: bool = False


def check_command(command: Sequence[str], launch: Launch) -> None:
    """InputError if the program `command[0]` cannot be started so."""
    name = command[0]
    directory = Path(launch.directory)
    if not directory.is_dir():
        raise InputError(f"there is no directory {launch.directory!r} to start the program in")
    if os.sep not in name:
        if shutil.which(name, path=launch.environment.get("PATH")) is None:
            here = f"; did you mean ./{name}?" if (directory / name).is_file() else ""
            raise InputError(f"there is no program {name!r} that can be started{here}")
        return
    if not (directory / name).is_file():
        raise InputError(f"there is no program {name!r}")
    if not os.access(directory / name, os.X_OK):
        advice = f"python {name}" if name.endswith(".py") else f"chmod +x {name}"
        raise InputError(f"{name!r} is not executable: try `{advice}`")


def python_hint(command: Sequence[str], launch: Launch) -> str:
    """That the Python that was to run a program has no mpi4py; "" if that cannot be."""
    if not Path(command[0]).name.startswith("python"):
        return ""
    try:
        done = subprocess.run(
            [command[0], "-c", FIND_MPI4PY],
            env=dict(os.environ) | dict(launch.environment),
            cwd=launch.directory or None,
            capture_output=True,
            timeout=FIND_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if done.returncode != NO_MPI4PY:
        return ""
    return f"; {command[0]} has no mpi4py: run the program by a Python that has it and shrimpmx"
