"""Sessions: which sets of processes there are, and groups of them."""

from shrimpmx.mpi.abi cimport MPI_SUCCESS, MPI_Session
from shrimpmx.mpi.communicator cimport Session
from shrimpmx.mpi.error cimport error_of_session
from shrimpmx.mpi.table cimport mpi_table

# The session of a handle; NULL: there is none.
cdef Session *session_of(MPI_Session handle) noexcept nogil
cdef void session_fill(mpi_table *table) noexcept nogil


cdef inline int session_ended(Session *session, int code) noexcept nogil:
    """What a call on `session` (NULL: on none) returns that ends so."""
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_session(session, code)
