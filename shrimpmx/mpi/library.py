"""Where the MPI library lies that programs load."""

from __future__ import annotations

from pathlib import Path

from shrimpmx.errors import InputError

LIBRARY = Path(__file__).resolve().parent / "lib" / "libmpi.so.12"


def library_path() -> Path:
    """The library; InputError if it was not built."""
    if not LIBRARY.is_file():
        raise InputError(f"the MPI library {LIBRARY} was not built: install shrimpmx again")
    return LIBRARY
