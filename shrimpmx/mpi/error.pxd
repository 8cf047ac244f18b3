"""Errors: to the handler of a communicator."""

from shrimpmx.mpi.abi cimport MPI_Comm, MPI_Errhandler, MPI_SUCCESS
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.table cimport mpi_table

# An error of a call on `comm` (NULL: on none): the value that the call returns. Without the lock,
# since it calls the program's handler, but for CODE_INTERRUPTED, which is no error of MPI.
cdef int error_raise(Comm *comm, int code) noexcept nogil
# The same by a handle, which may be none.
cdef int error_raise_on(MPI_Comm comm, int code) noexcept nogil
# Another object has that handler, or one no longer does. Under the lock.
cdef void handler_keep(MPI_Errhandler handle) noexcept nogil
cdef void handler_drop(MPI_Errhandler handle) noexcept nogil
cdef void error_fill(mpi_table *table) noexcept nogil


cdef inline int ended(Comm *comm, int code) noexcept nogil:
    """What a call on `comm` returns that ends so."""
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)
