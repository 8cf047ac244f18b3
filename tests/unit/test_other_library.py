"""Another MPI library in a process, by its mapped files."""

from __future__ import annotations

import pytest

from shrimpmx.cluster.engine.mpi_ranks import other_library_in

OURS = "/opt/venv/lib/python3.11/site-packages/shrimpmx/mpi/lib/libmpi.so.12"
ANY = ["libmpich.so.12.2.2", "libmpi.so.40", "libmpi.so", "libpmpi.so.12", "libmpi_abi.so.1"]
# They need a library behind them, and the loader maps them before it.
IN_FRONT = ["mpichfort", "mpichcxx", "mpifort", "mpicxx", "mpiP", "mpi_usempif08", "mpir", "mpl"]


def maps_of(*paths: str) -> str:
    """Lines of /proc/PID/maps in which these files are mapped, beside other memory."""
    lines = [
        "5581d2b6e000-5581d2b6f000 r--p 00000000 fe:00 131 /opt/ring",
        *(
            f"7f40c6a00000-7f40c6a01000 r-xp 00000000 fe:00 17{i:<20} {p}"
            for i, p in enumerate(paths)
        ),
        "7ffd1b5f2000-7ffd1b613000 rw-p 00000000 00:00 0 [stack]",
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ANY)
def test_a_library_is_found_unless_ours_is_there(name: str) -> None:
    path = f"/usr/lib/{name}"
    assert other_library_in(maps_of(path)) == path
    assert other_library_in(maps_of(path, OURS)) == other_library_in(maps_of(OURS)) == ""


@pytest.mark.parametrize("name", IN_FRONT)
def test_what_stands_in_front_of_a_library_is_none(name: str) -> None:
    path, other = f"/usr/lib/lib{name}.so.12", "/opt/mpi/lib/libmpi.so.40"
    assert other_library_in(maps_of(path)) == ""
    assert other_library_in(maps_of(path, other)) == other
