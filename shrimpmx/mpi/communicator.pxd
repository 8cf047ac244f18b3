"""Communicators: which processes they have, and their contexts."""

from libc.stdint cimport uint32_t

from shrimpmx.mpi.abi cimport MPI_COMM_SELF, MPI_COMM_WORLD, MPI_MAX_OBJECT_NAME, MPI_Comm
from shrimpmx.mpi.attribute cimport Attribute
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mx.types cimport MxPartner

cdef struct Comm:
    MPI_Comm handle          # 0: unused
    uint32_t context         # of its messages; the next one is of its collectives
    int rank                 # of this process
    int size
    int *ranks               # in the world, by rank here
    MxPartner **partners     # by rank here
    int error_handler        # a handle
    uint32_t uses            # the user's handle, and requests that are under way
    bint freed               # by the user
    uint32_t collectives     # started so far: the tag of the next one
    Attribute *attributes    # the newest first
    char[MPI_MAX_OBJECT_NAME] name

cdef Comm *comm_world
cdef Comm *comm_self

# A communicator by a handle that is neither world nor self; NULL: there is none.
cdef Comm *comm_other(MPI_Comm handle) noexcept nogil
# It is freed with its last use. Under the lock.
cdef void comm_drop(Comm *comm) noexcept nogil
# World and self. 0, or -1 without memory.
cdef int comm_start() except -1
cdef void comm_fill(mpi_table *table) noexcept nogil


cdef inline Comm *comm_of(MPI_Comm handle) noexcept nogil:
    """The communicator of a handle; NULL: there is none."""
    if handle == MPI_COMM_WORLD:
        return comm_world
    if handle == MPI_COMM_SELF:
        return comm_self
    return comm_other(handle)
