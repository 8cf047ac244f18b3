"""MPI programs of C and C++ for tests: compiled by `shrimpmx mpicc`, run by `shrimpmx mpirun`."""

from __future__ import annotations

from pathlib import Path

from shrimpmx.cli import main


def compiled(
    directory: Path, text: str, compiler: str = "mpicc", suffix: str = ".c", *words: str
) -> str:
    """The program's path. `words`: more of the compiler's."""
    source, program = directory / f"program{suffix}", directory / "program"
    source.write_text(text)
    assert main([compiler, *words, "-Wall", "-Werror", "-o", str(program), str(source)]) == 0
    return str(program)


def mpirun(*words: str, engine: str = "forked") -> int:
    """The exit code."""
    return main(["mpirun", "--engine", engine, *words])


# A program that checks itself: around its functions, and the calls of these.
_HEAD = r"""
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(9); \
        } \
    } while (0)

static int rank, size;
"""
_MAIN = r"""
int main(int argc, char **argv) {
    int provided, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Query_thread(&level);
    CHECK(level == provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CALLS
    if (rank == 0)
        printf("all well\n");
    return MPI_Finalize();
}
"""


def standard_program(directory: Path, functions: str, calls: str) -> str:
    """The path of a program of the standard ABI, which prints "all well" if each CHECK holds."""
    text = _HEAD + functions + _MAIN.replace("CALLS", calls)
    return compiled(directory, text, "mpicc", ".c", "-abi")
