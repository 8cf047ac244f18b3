"""How the program of a rank is started, and whether it can be: else why, and what to do."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from shrimpmx.errors import InputError
from shrimpmx.native.records import dataclass, field

# Ends with this code if there is no mpi4py.
NO_MPI4PY = 7
FIND_MPI4PY = f"""
import importlib.util
raise SystemExit(0 if importlib.util.find_spec("mpi4py") else {NO_MPI4PY})
"""
FIND_LIMIT_S = 5.0
# How files begin that the kernel starts: scripts, and programs.
ELF = b"\x7fELF"
MAGIC = (b"#!", ELF)
# By the endings of sources, which are no programs yet; Debian's compiler of Fortran is MPICH's.
COMPILERS = {
    ".c": "shrimpmx mpicc",
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".C"), "shrimpmx mpicxx"),
    **dict.fromkeys((".f", ".f90", ".F90", ".f08"), "mpifort.mpich"),
}


@dataclass(frozen=True)
class Launch:
    """How the program of an MPI rank is started.

    `environment` is what it gets beside the caller's variables, `directory` where it starts, ""
    where the caller is. `stdin` is the file that it reads; "": the caller's own input. `stdout`
    is the file that its output is added to, behind a line with the `heading`, if there is one; "":
    the caller's own. `tagged`: each line of its output begins with the rank.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""
    stdin: str = os.devnull
    stdout: str = ""
    heading: str = ""
    tagged: bool = False


def program_path(name: str, places: str | None = None) -> str | None:
    """What shutil.which() finds. Its module also loads those of three kinds of archives, a fiftieth
    of a start.
    """
    if os.path.dirname(name):
        paths = [name]
    else:
        places = os.environ.get("PATH", os.defpath) if places is None else places
        paths = [os.path.join(place, name) for place in places.split(os.pathsep) if places]
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def check_command(command: Sequence[str], launch: Launch) -> None:
    """InputError if the program `command[0]` cannot be started so."""
    name = command[0]
    directory = Path(launch.directory)
    if not directory.is_dir():
        raise InputError(f"there is no directory {launch.directory!r} to start the program in")
    path = directory / name
    _check_source(path, name, launch)
    if os.sep not in name:
        found = program_path(name, launch.environment.get("PATH"))
        if found is None:
            here = f"; did you mean `{_start_of(path, name)}`?" if path.is_file() else ""
            raise InputError(f"there is no program {name!r} that can be started{here}")
        path = Path(found)
    elif path.is_dir():
        raise InputError(f"{name!r} is a directory, not a program")
    elif not path.is_file():
        raise InputError(f"there is no program {name!r}")
    elif not os.access(path, os.X_OK):
        raise InputError(f"{name!r} is not executable: try `{_start_of(path, name)}`")
    _check_interpreter(path, name)


def _check_source(path: Path, name: str, launch: Launch) -> None:
    """InputError for the source of a program, which has to be compiled."""
    compiler = COMPILERS.get(path.suffix)
    if compiler is None or not path.is_file() or (_head_of(path) or b"").startswith(MAGIC):
        return
    source = str(path) if launch.directory else name
    program = str(Path(source).with_suffix(""))
    start = program if os.sep in program else f"{os.curdir}{os.sep}{program}"
    raise InputError(
        f"{name!r} is the source of a program: compile it by `{compiler} -o "
        f"{shlex.quote(program)} {shlex.quote(source)}`, and start {shlex.quote(start)}"
    )


def _start_of(path: Path, name: str) -> str:
    """The words that start a file of the user's, whose name may lack its directory."""
    quoted = shlex.quote(name)
    if name.endswith(".py"):
        return f"{'python' if program_path('python') else sys.executable} {quoted}"
    head = _head_of(path)
    local = quoted if os.sep in name else f"{os.curdir}{os.sep}{quoted}"
    if head and not head.startswith(MAGIC):
        return f"sh {quoted}"
    # The program starts in another directory, it may be, than this command does.
    return local if os.access(path, os.X_OK) else f"chmod +x {shlex.quote(str(path))}; {local}"


def _check_interpreter(path: Path, name: str) -> None:
    """InputError if a script names no interpreter, or none that there is: the kernel's errors do
    not tell.
    """
    head = _head_of(path)
    if head is None or b"\0" in head:
        return
    if not head:
        raise InputError(f"{name!r} is an empty file, not a program")
    if not head.startswith(b"#!"):
        raise InputError(
            f"{name!r} is a script without a first line that names its interpreter, such as "
            f"#!/usr/bin/env python: try `{_start_of(path, name)}`"
        )
    first = head[2:].partition(b"\n")[0]
    if first.endswith(b"\r"):
        raise InputError(
            f"the lines of {name!r} end as on Windows, so its interpreter is not found: try "
            f"`{_start_of(path, name)}`, or `sed -i 's/\r$//' {shlex.quote(str(path))}`"
        )
    interpreter = os.fsdecode((first.split() or [b""])[0])
    if not os.access(interpreter, os.X_OK) or Path(interpreter).is_dir():
        raise InputError(
            f"{name!r} names {interpreter!r} as its interpreter, which cannot be started: correct "
            "its first line"
        )


def _head_of(path: Path) -> bytes | None:
    """The first bytes of a file; None if they cannot be read."""
    try:
        if path.is_file():
            with path.open("rb") as file:
                return file.read(256)
    except OSError:
        pass
    return None


def swallowed(arguments: Sequence[str], words: Sequence[str]) -> str:
    """A sentence if the option in front of a program's words has taken the program as its value."""
    *_, option, value = ["", "", *arguments[: len(arguments) - len(words)]]
    if not option.startswith("-") or program_path(value) is None:
        return ""
    return (
        f"{option} needs a value and has taken {value!r}, a program: give it one, as in "
        f"`{option} VALUE {shlex.join([value, *words])}`"
    )


def own_mpi_hint(command: str) -> str:
    """That a program has an MPI linked into it; "" if it has not, or its symbols do not tell."""
    path = Path(program_path(command) or command)
    try:
        program = path.read_bytes() if (_head_of(path) or b"").startswith(ELF) else b""
    except OSError:
        return ""
    if b"MPI_Init\0" not in program or b"\0libmpi" in program:
        return ""
    return ", but that of an MPI linked statically: link it without -static, C by `shrimpmx mpicc`"


def crash_hint(command: Sequence[str]) -> str:
    """How to see the stack of a crashed program; "" for Python, which has shown its lines."""
    if _is_python(command):
        return ""
    words = shlex.join(command)
    return f"; `gdb -batch -ex run -ex bt --args {words}` in place of `{words}` shows where"


def _is_python(command: Sequence[str]) -> bool:
    return Path(command[0]).name.startswith("python")


def python_hint(command: Sequence[str], launch: Launch) -> str:
    """That the Python that was to run a program has no mpi4py; "" if that cannot be."""
    if not _is_python(command):
        return ""
    import subprocess  # few programs fail

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
