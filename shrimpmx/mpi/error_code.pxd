"""Error codes, and their texts."""

from shrimpmx.mpi.table cimport mpi_table

# The highest code in use, to which the attribute MPI_LASTUSEDCODE points.
cdef int last_code

cdef enum Detail:            # of an error, beside its class
    DETAIL_NONE
    DETAIL_COMMS             # no room for another of these
    DETAIL_DATATYPES
    DETAIL_ERRHANDLERS
    DETAIL_CODES
    DETAIL_GROUPS
    DETAIL_INFOS
    DETAIL_KEYVALS
    DETAIL_OPS
    DETAIL_REQUESTS
    DETAIL_TYPE_SIZE
    DETAIL_SHIFT = 24


cdef inline int error_detailed(int error_class, Detail detail) noexcept nogil:
    """The code of an error of that class, with a text of its own."""
    return error_class | detail << DETAIL_SHIFT


# Writes the text of a code, of MPI_MAX_ERROR_STRING bytes at most: its length.
cdef int error_text(int code, char *text) noexcept nogil
cdef void error_code_fill(mpi_table *table) noexcept nogil
