"""What a function does that is not implemented: it raises an error that names it."""

from shrimpmx.mpi.abi cimport MPI_Comm
from shrimpmx.mpi.table cimport mpi_table

# Raises the error of a call on a communicator, or on none, and returns what the call does.
ctypedef int (*refuse_function)(MPI_Comm comm, int code) noexcept nogil

# Fills every field with a function that raises MPI_ERR_UNSUPPORTED_OPERATION | (number + 1) << 8,
# or returns it, if `raises` is NULL.
cdef void refuse_all(mpi_table *table, refuse_function raises) noexcept nogil
# "MPI_Send" of MPI_FUNCTION_Send; NULL of a number that no function has.
cdef const char *function_name(int number) noexcept nogil
# What to do instead of a function that has a name; "" for nothing.
cdef const char *function_advised(int number) noexcept nogil
