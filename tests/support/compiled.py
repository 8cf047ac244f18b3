"""MPI programs of C and C++ for tests: compiled by `shrimpmx mpicc`, run by `shrimpmx mpirun`."""

from __future__ import annotations

from pathlib import Path

from shrimpmx.cli import main


def compiled(directory: Path, text: str, compiler: str = "mpicc", suffix: str = ".c") -> str:
    """The program's path."""
    source, program = directory / f"program{suffix}", directory / "program"
    source.write_text(text)
    assert main([compiler, "-Wall", "-Werror", "-o", str(program), str(source)]) == 0
    return str(program)


def mpirun(*words: str, engine: str = "forked") -> int:
    """The exit code."""
    return main(["mpirun", "--engine", engine, *words])
