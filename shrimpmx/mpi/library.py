"""Where libmpi.so.12 is, the library that programs of MPI load."""

from __future__ import annotations

from pathlib import Path

from shrimpmx.errors import InputError


def library_path() -> Path:
    """The library's file; InputError if it was not built."""
    path = Path(__file__).parent / "lib/libmpi.so.12"
    if not path.exists():
        raise InputError(
            f"there is no {path}: build it by `python setup.py build_ext --inplace`, or install "
            "shrimpmx"
        )
    return path
