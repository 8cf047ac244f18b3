"""Inter-communicators (MPI 3.1, 6.6).

Both groups use the same contexts: a message goes from a rank of one group to a rank of the other,
and names the sender's rank in its own group. What a group has to know of itself alone goes to the
other one and comes back.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from shrimpmx.mpi.abi cimport (
    MPI_COMM_NULL, MPI_Comm, MPI_ERR_COMM, MPI_ERR_NO_MEM, MPI_ERR_RANK, MPI_ERR_TAG, MPI_SUCCESS,
    MPI_UNDEFINED,
)
from shrimpmx.mpi.broadcast cimport build_broadcast
from shrimpmx.mpi.collective cimport begin, broadcast_bytes, run
from shrimpmx.mpi.communicator cimport (
    Comm, agree_on_contexts, comm_intra_of, comm_leads, comm_made, comm_make, comm_make_inter,
    comm_of, contexts_give, contexts_share, contexts_take,
)
from shrimpmx.mpi.error cimport ended, error_raise
from shrimpmx.mpi.error_code cimport DETAIL_COMMS, error_detailed
from shrimpmx.mpi.exchange cimport send_to_all
from shrimpmx.mpi.group cimport Group
from shrimpmx.mpi.matching cimport TAG_MAX
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_receive, schedule_round, schedule_send, schedule_tagged,
)
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world


cdef void build_agreement(Schedule *schedule, void *data, int64_t length) noexcept nogil:
    cdef Comm *comm = schedule.comm
    if comm.remote == NULL:
        build_broadcast(schedule, data, length, 0)
        return
    if comm_leads(comm):
        if comm.rank == 0:
            send_to_all(schedule, data, length)
        schedule_round(schedule)
        schedule_receive(schedule, 0, data, length)
    else:
        schedule_receive(schedule, 0, data, length)
        schedule_round(schedule)
        if comm.rank == 0:
            send_to_all(schedule, data, length)


cdef int inter_gather(Comm *comm, const void *own, void *local, void *remote,
                      int64_t length) noexcept nogil:
    cdef Schedule *schedule = begin(comm)
    cdef int peer
    if schedule != NULL:
        send_to_all(schedule, own, length)
        for peer in range(comm.peers):
            schedule_receive(schedule, peer, <char *>remote + peer * length, length)
        schedule_round(schedule)
        if comm.rank == 0:
            send_to_all(schedule, remote, comm.peers * length)
        schedule_receive(schedule, 0, local, comm.size * length)
    return run(comm, schedule, NULL)


cdef int swap(Comm *comm, const void *own, int64_t length, void *theirs,
              int64_t room) noexcept nogil:
    """What all of a group have becomes known to the other one."""
    cdef Schedule *schedule = begin(comm)
    if schedule != NULL:
        if comm.rank == 0:
            send_to_all(schedule, own, length)
        schedule_receive(schedule, 0, theirs, room)
    return run(comm, schedule, NULL)


# -- from an inter-communicator ------------------------------------------------------------

cdef int inter_create(Comm *parent, const Group *group, MPI_Comm *made) noexcept nogil:
    """Without a process in one of the groups there is none."""
    cdef int *own = <int *>malloc((1 + group.size + 1 + parent.peers) * sizeof(int))
    cdef int *theirs = own + 1 + group.size
    cdef Comm *comm = NULL
    cdef uint32_t context
    cdef int code
    if own == NULL:
        return error_raise(parent, MPI_ERR_NO_MEM)
    own[0] = group.size
    memcpy(own + 1, group.ranks, group.size * sizeof(int))
    code = swap(parent, own, (1 + group.size) * sizeof(int), theirs,
                (1 + parent.peers) * sizeof(int))
    context = agree_on_contexts(parent)
    if code == MPI_SUCCESS and group.rank != MPI_UNDEFINED and theirs[0] > 0:
        comm = comm_make_inter(parent, context, group.ranks, group.size, theirs + 1, theirs[0])
        code = made_code(comm)
    else:
        contexts_give(context)
    free(own)
    made[0] = MPI_COMM_NULL if comm == NULL else comm.handle
    return ended(parent, code)


cdef int merge(MPI_Comm handle, int high, MPI_Comm *made) noexcept nogil:
    """The group that is not high stands first; if both say the same, the one that leads."""
    cdef Comm *inter = comm_of(handle)
    cdef Comm *comm
    cdef int *ranks
    cdef int own_high = high != 0, their_high = 0
    cdef bint first
    cdef uint32_t context
    made[0] = MPI_COMM_NULL
    if inter == NULL or inter.remote == NULL:
        return error_raise(inter, MPI_ERR_COMM)
    ranks = <int *>malloc((inter.size + inter.peers) * sizeof(int))
    if ranks == NULL:
        return error_raise(inter, MPI_ERR_NO_MEM)
    swap(inter, &own_high, sizeof(int), &their_high, sizeof(int))
    context = agree_on_contexts(inter)
    first = own_high < their_high if own_high != their_high else comm_leads(inter)
    memcpy(ranks if first else ranks + inter.peers, inter.ranks, inter.size * sizeof(int))
    memcpy(ranks + inter.size if first else ranks, inter.remote, inter.peers * sizeof(int))
    comm = comm_make(inter, context, ranks, inter.size + inter.peers)
    free(ranks)
    return comm_made(inter, comm, made)


cdef inline int made_code(const Comm *comm) noexcept nogil:
    return MPI_SUCCESS if comm != NULL else error_detailed(MPI_ERR_NO_MEM, DETAIL_COMMS)


# -- from two communicators ------------------------------------------------------------------

cdef struct Side:            # what the leader of a group tells the other one
    uint32_t context         # 0: it is the other one that takes them
    int code                 # an error of the leader's, for its own group
    int size                 # of the group, whose ranks in the world follow


cdef inline int *ranks_of(Side *side) noexcept nogil:
    return <int *>(side + 1)


cdef int lead(Comm *local, MPI_Comm peer_handle, int remote_leader, int tag, Side *theirs,
              int64_t room) noexcept nogil:
    """The leaders exchange what they know: the class of an error."""
    cdef Comm *peer = comm_of(peer_handle)
    cdef Schedule *schedule
    cdef Side *own
    cdef int leader, code
    if peer == NULL:
        return MPI_ERR_COMM
    if <unsigned int>remote_leader >= <unsigned int>peer.peers:
        return MPI_ERR_RANK
    if not 0 <= tag <= TAG_MAX:
        return MPI_ERR_TAG
    own = <Side *>malloc(room)
    if own == NULL:
        return MPI_ERR_NO_MEM
    leader = peer.ranks[remote_leader] if peer.remote == NULL else peer.remote[remote_leader]
    # How many processes the other group has is known later.
    own.context = contexts_take(2 * world.size) if world.rank < leader else 0
    own.size = local.size
    memcpy(ranks_of(own), local.ranks, local.size * sizeof(int))
    schedule = begin(peer)
    if schedule != NULL:
        schedule_tagged(schedule, tag)
        schedule_send(schedule, remote_leader, own, sizeof(Side) + local.size * sizeof(int))
        schedule_receive(schedule, remote_leader, theirs, room)
    code = run(peer, schedule, NULL)
    contexts_share(own.context, own.size + theirs.size - 2 * world.size)
    theirs.context = max(own.context, theirs.context)
    free(own)
    return code


cdef int intercomm_create(MPI_Comm handle, int leader, MPI_Comm peer, int remote_leader, int tag,
                          MPI_Comm *made) noexcept nogil:
    cdef Comm *local = comm_intra_of(handle)
    cdef Comm *comm = NULL
    cdef Side *theirs
    cdef int64_t room = sizeof(Side) + world.size * sizeof(int)
    cdef int code
    made[0] = MPI_COMM_NULL
    if local == NULL:
        return error_raise(comm_of(handle), MPI_ERR_COMM)
    if <unsigned int>leader >= <unsigned int>local.size:
        return error_raise(local, MPI_ERR_RANK)
    theirs = <Side *>malloc(room)
    if theirs == NULL:
        return error_raise(local, MPI_ERR_NO_MEM)
    if local.rank == leader:
        theirs.code = lead(local, peer, remote_leader, tag, theirs, room)
    code = broadcast_bytes(local, theirs, room, leader)
    if code == MPI_SUCCESS:
        code = theirs.code
    if code == MPI_SUCCESS:
        comm = comm_make_inter(local, theirs.context, local.ranks, local.size, ranks_of(theirs),
                               theirs.size)
        code = made_code(comm)
    made[0] = MPI_COMM_NULL if comm == NULL else comm.handle
    free(theirs)
    return ended(local, code)


cdef void intercomm_fill(mpi_table *table) noexcept nogil:
    table.Intercomm_create = intercomm_create
    table.Intercomm_merge = merge
