"""Where the libraries that programs of MPI load are, and the interpreter for them."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import posix_ipc

from shrimpmx.errors import InputError

# The library with MPICH's ABI, and that with the standard one of MPI 5.
LIBRARY, STANDARD_LIBRARY = "libmpi.so.12", "libmpi_abi.so.1"


def library_path(name: str = LIBRARY) -> Path:
    """The library's file; InputError if it was not built."""
    path = Path(__file__).parent / "lib" / name
    if not path.exists():
        raise InputError(
            f"{path} is missing: build it with `python setup.py build_ext --inplace`, or install "
            "shrimpmx"
        )
    return path


def include_path(name: str = LIBRARY) -> Path:
    """The directory of the library's mpi.h."""
    path = Path(__file__).parent / "include"
    return path / "abi" if name == STANDARD_LIBRARY else path


@functools.cache
def interpreter() -> dict[str, str]:
    """The variables by which the library finds this Python, and the packages that a rank needs, in
    a program that has none: empty if this one has no shared library.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}{sys.abiflags}"
    library = Path(sys.base_prefix, f"lib/libpython{version}.so.1.0")
    if not library.exists():
        found = _configured_library()
        if found is None:
            return {}
        library = found
    return {
        "SHRIMPMX_PYTHON": sys.executable,
        "SHRIMPMX_LIBPYTHON": str(library),
        "SHRIMPMX_PACKAGES": str(Path(posix_ipc.__file__).parent),
    }


def _configured_library() -> Path | None:
    """Where the library is that this Python was built with, not at the usual place."""
    import sysconfig  # reads a thousand settings

    name = sysconfig.get_config_var("INSTSONAME") or ""
    places = (sysconfig.get_config_var("LIBDIR") or "", Path(sys.base_prefix, "lib"))
    found = [Path(place, name) for place in places if ".so" in name]
    return next((path for path in found if path.exists()), None)
