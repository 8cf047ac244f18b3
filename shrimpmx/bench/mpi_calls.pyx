"""MPI's calls as a compiled program makes them: through the table of functions."""

from cpython.pycapsule cimport PyCapsule_GetPointer

from shrimpmx.mpi.abi cimport MPI_BYTE, MPI_COMM_WORLD, MPI_Request, MPI_SUCCESS, no_status
from shrimpmx.mpi.table cimport mpi_table

from shrimpmx.errors import MxError

cdef enum:
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
    check(code)


def mpi_exchanges(table, int other, bint first, int count, int size_bytes):
    """The same by Irecv, Isend and Wait, with both messages on their way at once."""
    cdef mpi_table *calls = <mpi_table *>PyCapsule_GetPointer(table, "shrimpmx.mpi.world.table")
    cdef char[BYTES_MAX] data, received
    cdef MPI_Request[2] requests
    cdef int _turn, code = MPI_SUCCESS
    with nogil:
        for _turn in range(count):
            code |= calls.Irecv(received, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                                &requests[0])
            code |= calls.Isend(data, size_bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1])
            code |= calls.Wait(&requests[0], no_status())
            code |= calls.Wait(&requests[1], no_status())
    check(code)


cdef int check(int code) except -1:
    if code != MPI_SUCCESS:
        raise MxError(f"a call of MPI failed with {code}")
    return 0
