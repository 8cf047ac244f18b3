"""Where libmpi.so.12, the library that programs of MPI load, is, and the interpreter for it."""

from __future__ import annotations

import functools
import sys
import sysconfig
from pathlib import Path

import posix_ipc

from shrimpmx.errors import InputError


def library_path() -> Path:
    """The library's file; InputError if it was not built."""
    path = Path(__file__).parent / "lib/libmpi.so.12"
    if not path.exists():
        raise InputError(
            f"{path} is missing: build it with `python setup.py build_ext --inplace`, or install "
            "shrimpmx"
        )
    return path


def include_path() -> Path:
    """The directory of mpi.h."""
    return Path(__file__).parent / "include"


@functools.cache
def interpreter() -> dict[str, str]:
    """The variables by which the library finds this Python, and the packages that a rank needs, in
    a program that has none: empty if this one has no shared library.
    """
    name = sysconfig.get_config_var("INSTSONAME") or ""
    places = (sysconfig.get_config_var("LIBDIR") or "", Path(sys.base_prefix, "lib"))
    found = [Path(place, name) for place in places if ".so" in name]
    library = next((path for path in found if path.exists()), None)
    if library is None:
        return {}
    return {
        "SHRIMPMX_PYTHON": sys.executable,
        "SHRIMPMX_LIBPYTHON": str(library),
        "SHRIMPMX_PACKAGES": str(Path(posix_ipc.__file__).parent),
    }
