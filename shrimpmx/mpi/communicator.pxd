"""Communicators: which processes they have, their contexts, and the queries about them."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.mpi.abi cimport (
    MPI_COMM_SELF, MPI_COMM_WORLD, MPI_MAX_OBJECT_NAME, MPI_Comm, MPI_Session,
)
from shrimpmx.mpi.attribute cimport Attribute
from shrimpmx.mpi.matching cimport CONTEXT_MAX
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
    int *strides             # between the ranks of neighbours, by dimension
    int nnodes               # of a graph
    int *index
    int *edges
    int *source_weights      # of a distributed graph; NULL: it has no weights
    int *destination_weights
    int *numbers             # where all of these are

cdef enum:                   # contexts of a communicator, counted from its first
    CONTEXT_MESSAGES = 0
    CONTEXT_COLLECTIVES
    CONTEXT_TAGGED           # of calls that make communicators under a tag of the program's
    CONTEXT_PARTITIONED      # of partitioned messages, to meet, and of their partitions
    CONTEXT_PARTITIONS
    CONTEXTS
    # Of a communicator whose ranks have not agreed yet, and of one that gets none.
    CONTEXT_LATER = CONTEXT_MAX

# Kinds of collectives of which none matches another (MPI 4.1, 6.12, 6.13).
cdef enum CollectiveKind:
    COLLECTIVE_NON_BLOCKING
    COLLECTIVE_BLOCKING
    COLLECTIVE_PERSISTENT
    COLLECTIVE_KINDS

cdef struct SendBuffer:      # the program's
    void *place              # NULL: none
    int64_t bytes

cdef struct Session:
    MPI_Session handle       # 0: unused
    int error_handler        # a handle
    SendBuffer buffer        # of buffered sends on its communicators that have none

cdef struct Comm:
    MPI_Comm handle          # 0: unused
    uint32_t context         # the first of its contexts, or CONTEXT_LATER
    int rank                 # of this process
    int size
    int *ranks               # in the world, by rank here
    int *remote              # those of an inter-communicator's remote group; NULL: it has none
    int peers                # how many its messages may go to: the remote group, or its own
    MxPartner **partners     # of the peers, by rank
    int error_handler        # a handle
    uint32_t uses            # the user's handle, and requests that are under way
    bint freed               # by the user
    uint32_t[COLLECTIVE_KINDS] collectives  # numbered so far, by their kind: for tags
    # Of its buffered sends; if it has none, they use its session's, or the process's.
    SendBuffer buffer
    Session *session         # from which it comes; NULL: from the world
    Attribute *attributes    # records, in no order
    Topology *topology       # NULL: none
    void *window             # whose communicator it is; NULL: of none
    char[MPI_MAX_OBJECT_NAME] name

# A communicator by a handle that is neither world nor self; NULL: there is none.
cdef Comm *comm_other(MPI_Comm handle) noexcept nogil
# That of one of its contexts; NULL: there is none any more. Under the lock.
cdef Comm *comm_of_context(uint32_t context) noexcept nogil
# It is freed with its last use. Under the lock.
cdef void comm_drop(Comm *comm) noexcept nogil
# Counts one more communicator for each of those processes of the world; False, and none is counted,
# if one of them has as many as it can have.
cdef bint comms_count(const int *ranks, int size) noexcept nogil
cdef void comms_uncount(const int *ranks, int size) noexcept nogil
# The first of a set of contexts that no communicator has, for those processes of the world, and
# others (NULL: none), for each of which a communicator is counted; 0: there is none, for any of
# them. Each has a share, until it gives it back.
cdef uint32_t contexts_take(const int *ranks, int size, const int *others,
                            int others_size) noexcept nogil
# So many more shares, or fewer.
cdef void contexts_share(uint32_t first, int shares) noexcept nogil
# Contexts for all of `parent`, by the rank that leads it; 0: none, for all of them.
cdef uint32_t contexts_of(const Comm *parent) noexcept nogil
# The same, for those that call it together: each has a share.
cdef uint32_t agree_on_contexts(Comm *parent) noexcept nogil
# A communicator of those processes of the world, with its parent's error handler. It has the
# process's share of its contexts. NULL: no memory, or no context; the share is given back.
cdef Comm *comm_make(Comm *parent, uint32_t context, const int *ranks, int size) noexcept nogil
# The same with a remote group of `peers` processes; NULL: it is no inter-communicator.
cdef Comm *comm_make_inter(Comm *parent, uint32_t context, const int *ranks, int size,
                           const int *remote, int peers) noexcept nogil
# A new communicator's error handler. Under the lock.
cdef void comm_handler_set(Comm *comm, int handler) noexcept nogil
# What a call returns that has made `comm` (NULL: it had no memory).
cdef int comm_made(Comm *parent, Comm *comm, MPI_Comm *made) noexcept nogil
# That of all ranks and slots of the run, for what is no program's; never NULL.
cdef Comm *comm_run() noexcept nogil
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


cdef inline Comm *comm_intra_of(MPI_Comm handle) noexcept nogil:
    """NULL also of an inter-communicator."""
    cdef Comm *comm = comm_of(handle)
    return comm if comm != NULL and comm.remote == NULL else NULL


# This process no longer uses its share, and has one communicator less.
cdef void contexts_give(uint32_t first) noexcept nogil


cdef inline bint comm_leads(const Comm *comm) noexcept nogil:
    """Whether this group is the one of the two that decides."""
    return comm.remote == NULL or comm.ranks[0] < comm.remote[0]


# -- Queries about communicators.

cdef void comm_query_fill(mpi_table *table) noexcept nogil
