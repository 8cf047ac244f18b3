"""Groups: sets of processes in an order."""

from shrimpmx.mpi.abi cimport MPI_Group
from shrimpmx.mpi.communicator cimport Session
from shrimpmx.mpi.table cimport mpi_table

cdef struct Group:
    MPI_Group handle         # 0: unused
    int rank                 # of this process; MPI_UNDEFINED if it is none of them
    int size
    int *ranks               # in the world, by rank here
    Session *session         # from which it comes; NULL: from the world

# The group of a handle; NULL: there is none.
cdef Group *group_of(MPI_Group handle) noexcept nogil
# A group of processes by their ranks in the world, which it copies, from that session (NULL: from
# none): the class of an error.
cdef int group_make(const int *ranks, int size, Session *session,
                    MPI_Group *made) noexcept nogil
cdef int group_start() except -1
cdef void group_fill(mpi_table *table) noexcept nogil
