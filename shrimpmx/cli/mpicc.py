"""`shrimpmx mpicc` and `mpicxx`: compile a program of C or C++ for `shrimpmx mpirun`."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
from functools import partial
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.mpi.library import LIBRARY, STANDARD_LIBRARY, include_path, library_path

# The variable that names a compiler, and what it is otherwise: the first that there is. Not CC and
# CXX, by which a makefile may have this command as its compiler.
COMPILERS = {
    "mpicc": ("SHRIMPMX_CC", "cc", "gcc", "clang"),
    "mpicxx": ("SHRIMPMX_CXX", "c++", "g++", "clang++"),
}
# With these words nothing is linked.
UNLINKED = {"-c", "-E", "-M", "-MM", "-S", "-fsyntax-only"}


def add_parser(commands: Any, name: str = "mpicc") -> None:
    """Declare the command's options: all words are the compiler's, but -show and -abi."""
    variable, *compilers = COMPILERS[name]
    parser = commands.add_parser(
        name,
        prefix_chars="+",
        add_help=False,
        usage=f"shrimpmx {name} [-show] [-abi] [WORDS OF THE COMPILER]",
        description="Compile a program with shrimpmx's mpi.h and link it with its MPI library, "
        "which has the binary interface of MPICH: the program also runs under MPICH and Intel MPI. "
        "With -abi the program has MPI 5's standard binary interface instead, and runs under "
        "each MPI with libmpi_abi.so.1. "
        f"The compiler is ${variable}, else {', '.join(compilers)}. -show prints its command line.",
    )
    parser.add_argument("words", nargs="*")
    parser.set_defaults(function=partial(run, parser))


def run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Compile; returns the compiler's exit code. InputError without a compiler or a library."""
    words = options.words
    if {"-h", "--help"} & {*words[:1]}:
        parser.print_help()
        return 0
    shown = "-show" in words
    name = STANDARD_LIBRARY if "-abi" in words else LIBRARY
    command = [*_compiler(parser.prog.split()[-1]), f"-I{include_path(name)}"]
    command += [word for word in words if word not in ("-show", "-abi")]
    if not UNLINKED & {*words}:
        library = library_path(name)
        command += [f"-L{library.parent}", f"-l:{library.name}"]
    if shown:
        print(shlex.join(command))
        return 0
    return subprocess.run(command, check=False).returncode


def _compiler(name: str) -> list[str]:
    variable, *others = COMPILERS[name]
    if given := shlex.split(os.environ.get(variable, "")):
        if shutil.which(given[0]) is None:
            raise InputError(f"{variable} names {given[0]}, which cannot be found")
        return given
    found = next(filter(shutil.which, others), None)
    if found is None:
        raise InputError(
            f"{name} needs a compiler, and finds none of {', '.join(others)}: install gcc, or name "
            f"one by {variable}"
        )
    return [found]
