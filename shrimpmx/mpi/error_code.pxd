"""Error codes, and their texts."""

from shrimpmx.mpi.table cimport mpi_table

# The highest code in use, to which the attribute MPI_LASTUSEDCODE points.
cdef int last_code

# Writes the text of a code, of MPI_MAX_ERROR_STRING bytes at most: its length.
cdef int error_text(int code, char *text) noexcept nogil
cdef void error_code_fill(mpi_table *table) noexcept nogil
