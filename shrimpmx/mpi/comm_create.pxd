"""New communicators from those that are there, inter-communicators among them."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport MPI_Comm
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.group cimport Group
from shrimpmx.mpi.schedule cimport Schedule
from shrimpmx.mpi.table cimport mpi_table

# MPI_Comm_split.
cdef int split(MPI_Comm handle, int color, int key, MPI_Comm *made) noexcept nogil
cdef void comm_create_fill(mpi_table *table) noexcept nogil


# -- Inter-communicators: two groups whose ranks talk to those of the other one.

# What rank 0 has becomes known to all; of two groups it is that of the one that leads.
cdef void build_agreement(Schedule *schedule, void *data, int64_t length) noexcept nogil

# Collective on an inter-communicator: the class of an error.
# What each rank of either group has, `length` bytes, by rank.
cdef int inter_gather(Comm *comm, const void *own, void *local, void *remote,
                      int64_t length) noexcept nogil
# MPI_Comm_create.
cdef int inter_create(Comm *parent, const Group *group, MPI_Comm *made) noexcept nogil
# Where ranks of two groups are not connected yet, those of one group connect to the others.
cdef enum Connecting:
    CONNECTING_BY_NUMBER     # those of the leader with the higher number in the run
    CONNECTING               # these
    CONNECTED_BY_OTHERS      # not these, whose leader waits for a first message

cdef enum:
    # From it on: tags on the communicator of the run under which groups make communicators.
    TAG_GROUPS = 0x08000000

# Of `local`, whose rank `leader` knows the leader of the other group as a rank of `peer`, which
# only that one needs: the code of an error.
cdef int intercomm_between(Comm *local, int leader, Comm *peer, int remote_leader, int tag,
                           Connecting connecting, MPI_Comm *made) noexcept nogil
cdef void intercomm_fill(mpi_table *table) noexcept nogil
