"""Generalized requests, for the calls that complete requests."""

from shrimpmx.mpi.abi cimport MPI_Status
from shrimpmx.mpi.request cimport Request
from shrimpmx.mpi.table cimport mpi_table

# All of these under the lock, which they give back while they call the program's functions: the
# class of an error.
# The request is complete, and gone.
cdef int generalized_end(Request *request, MPI_Status *status) noexcept nogil
cdef int generalized_query(const Request *request, MPI_Status *status) noexcept nogil
cdef int generalized_cancel(const Request *request) noexcept nogil
# The request goes when it is complete.
cdef int generalized_free(Request *request) noexcept nogil
cdef void generalized_fill(mpi_table *table) noexcept nogil
