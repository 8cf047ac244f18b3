"""Communicators: which processes they have, and their contexts."""

from libc.stdint cimport uint32_t

from shrimpmx.mpi.abi cimport MPI_COMM_SELF, MPI_COMM_WORLD, MPI_MAX_OBJECT_NAME, MPI_Comm
from shrimpmx.mpi.attribute cimport Attribute
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.types cimport MxPartner

cdef struct Topology:        # as it is to one rank
    int kind                 # MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH
    uint32_t uses            # communicators that have it
    int indegree             # this rank's neighbours, from which it receives
    int *sources
    int outdegree            # and to which it sends
    int *destinations
    int ndims                # of a grid
    int *dims
    int *periods
    int nnodes               # of a graph
    int *index
    int *edges
    int *source_weights      # of a distributed graph; NULL: it has no weights
    int *destination_weights
    int *numbers             # where all of these are

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
    Topology *topology       # NULL: none
    char[MPI_MAX_OBJECT_NAME] name

# A communicator by a handle that is neither world nor self; NULL: there is none.
cdef Comm *comm_other(MPI_Comm handle) noexcept nogil
# It is freed with its last use. Under the lock.
cdef void comm_drop(Comm *comm) noexcept nogil
# Collective on `parent`: the first of `count` pairs of contexts that no communicator has had.
# 0: there are no more.
cdef uint32_t agree_on_contexts(Comm *parent, int count) noexcept nogil
# A communicator of those processes of the world, with its parent's error handler. NULL: no memory.
cdef Comm *comm_make(Comm *parent, uint32_t context, const int *ranks, int size) noexcept nogil
# MPI_Comm_split.
cdef int split(MPI_Comm handle, int color, int key, MPI_Comm *made) noexcept nogil
# World and self. 0, or -1 without memory.
cdef int comm_start() except -1
cdef void comm_fill(mpi_table *table) noexcept nogil


cdef inline Comm *comm_world() noexcept nogil:
    return <Comm *>world.comm_world


cdef inline Comm *comm_self() noexcept nogil:
    return <Comm *>world.comm_self


cdef inline Comm *comm_of(MPI_Comm handle) noexcept nogil:
    """The communicator of a handle; NULL: there is none."""
    if handle == MPI_COMM_WORLD:
        return comm_world()
    if handle == MPI_COMM_SELF:
        return comm_self()
    return comm_other(handle)
