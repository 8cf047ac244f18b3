"""What a function does that is not implemented: it returns an error that names it."""

from shrimpmx.mpi.table cimport mpi_table

# Fills every field with a function that returns MPI_ERR_UNSUPPORTED_OPERATION | (number + 1) << 8.
cdef void refuse_all(mpi_table *table) noexcept nogil
# "MPI_Send" of MPI_FUNCTION_Send; NULL of a number that no function has.
cdef const char *function_name(int number) noexcept nogil
