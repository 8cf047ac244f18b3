"""MPI's calls as a compiled program makes them: through the table of functions."""

from cpython.pycapsule cimport PyCapsule_GetPointer

from shrimpmx.mpi.abi cimport MPI_COMM_WORLD, MPI_SUCCESS, no_status
from shrimpmx.mpi.table cimport mpi_table

from shrimpmx.errors import MxError

cdef enum:
    MPI_BYTE = 0x4C00010D
    BYTES_MAX = 4096


def mpi_round_trips(table, int other, bint first, int count, int size_bytes):
    """Exchange `count` messages of `size_bytes`, 4096 at most, with rank `other`; `first`: this
    rank sends first. `table`: the capsule that shrimpmx.mpi.world.begin returns. MxError if a call
    fails.
    """
    cdef mpi_table *calls = <mpi_table *>PyCapsule_GetPointer(table, "shrimpmx.mpi.world.table")
    cdef char[BYTES_MAX] data
    cdef int _turn, code = MPI_SUCCESS
    with nogil:
        for _turn in range(count):
            if first:
                code |= calls.Send(data, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD)
            code |= calls.Recv(data, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, no_status())
            if not first:
                code |= calls.Send(data, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD)
    if code != MPI_SUCCESS:
        raise MxError(f"a call of MPI failed with {code}")
