"""Error codes, and their texts."""

from shrimpmx.mpi.abi cimport MPI_ERR_BUFFER, MPI_ERR_OTHER
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
    DETAIL_INTERRUPTED       # a call; the rest: a message's data
    DETAIL_WITHDRAWN
    DETAIL_UNREADABLE
    DETAIL_UNWRITABLE
    DETAIL_SHIFT = 24

# Codes that other modules make or compare. Of two errors of a call the larger is raised.
cdef enum:
    # A signal's handler has raised an exception, or the run ends: the wait ended without a result.
    CODE_INTERRUPTED = MPI_ERR_OTHER | DETAIL_INTERRUPTED << DETAIL_SHIFT
    CODE_WITHDRAWN = MPI_ERR_OTHER | DETAIL_WITHDRAWN << DETAIL_SHIFT
    CODE_UNREADABLE = MPI_ERR_BUFFER | DETAIL_UNREADABLE << DETAIL_SHIFT
    CODE_UNWRITABLE = MPI_ERR_BUFFER | DETAIL_UNWRITABLE << DETAIL_SHIFT


cdef inline int error_detailed(int error_class, Detail detail) noexcept nogil:
    """The code of an error of that class, with a text of its own."""
    return error_class | detail << DETAIL_SHIFT


# Writes the text of a code, of MPI_MAX_ERROR_STRING bytes at most: its length.
cdef int error_text(int code, char *text) noexcept nogil
cdef void error_code_fill(mpi_table *table) noexcept nogil
