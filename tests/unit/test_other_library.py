"""Another MPI library in a process, by its mapped files."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from shrimpmx.cluster.engine.mpi_ranks import other_library

ANY = ["libmpich.so.12.2.2", "libmpi.so.40", "libmpi.so", "libpmpi.so.12", "libmpi_abi.so.1"]
# They need a library behind them, and the loader maps them before it.
IN_FRONT = ["mpichfort", "mpichcxx", "mpifort", "mpicxx", "mpiP", "mpi_usempif08", "mpir", "mpl"]


def found_beside(path: Path, *others: Path) -> str:
    """What is found while these files are mapped, whichever comes first."""
    maps = []
    for each in (path, *others):
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_bytes(bytes(mmap.PAGESIZE))
        with each.open("rb") as file:
            maps.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    try:
        return other_library(os.getpid())
    finally:
        for each in maps:
            each.close()


@pytest.mark.parametrize("name", ANY)
def test_a_library_is_found_unless_ours_is_there(name: str, tmp_path: Path) -> None:
    path, own = tmp_path / name, tmp_path / "shrimpmx/mpi/lib/libmpi.so.12"
    assert found_beside(path) == str(path)
    assert found_beside(path, own) == found_beside(own) == ""


@pytest.mark.parametrize("name", IN_FRONT)
def test_what_stands_in_front_of_a_library_is_none(name: str, tmp_path: Path) -> None:
    path, other = tmp_path / f"lib{name}.so.12", tmp_path / "libmpi.so.40"
    assert found_beside(path) == ""
    assert found_beside(path, other) == str(other)
