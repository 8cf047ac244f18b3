"""Errors: to the handler of a communicator, and what they are called."""

from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.table cimport mpi_table

# An error of a call on `comm` (NULL: on none): the value that the call returns. Without the lock.
cdef int error_raise(Comm *comm, int code) noexcept nogil
cdef void error_fill(mpi_table *table) noexcept nogil
