"""New communicators from those that are there (MPI 3.1, 6.4.2), inter-communicators (6.6) too."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport strcmp, strcpy, strlen

from shrimpmx.mpi.abi cimport (
    MPI_COMM_NULL, MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_GROUP, MPI_ERR_INFO, MPI_ERR_NO_MEM,
    MPI_ERR_RANK, MPI_ERR_TAG, MPI_GROUP_EMPTY, MPI_INFO_NULL, MPI_MAX_STRINGTAG_LEN,
    MPI_REQUEST_NULL, MPI_SUCCESS, MPI_UNDEFINED, MPI_Comm, MPI_Errhandler, MPI_Group, MPI_Info,
    MPI_Request,
)
from shrimpmx.mpi.attribute cimport attributes_copy, attributes_delete
from shrimpmx.mpi.collective_calls cimport (
    allgather_bytes, barrier_on, begin, broadcast_bytes, run,
)
from shrimpmx.mpi.communicator cimport (
    CONTEXT_LATER, Comm, agree_on_contexts, comm_drop, comm_handler_set, comm_intra_of, comm_leads,
    comm_made, comm_make, comm_make_inter, comm_of, comm_run, comms_count, comms_uncount,
    contexts_give, contexts_of, contexts_share, contexts_take,
)
from shrimpmx.mpi.data_algorithms cimport build_broadcast, send_to_all
from shrimpmx.mpi.error cimport (
    DETAIL_COMMS, DETAIL_STRING_TAGS, ended, error_by_handler, error_detailed, error_of_session,
    error_raise, handler_of_comms,
)
from shrimpmx.mpi.group cimport Group, group_of
from shrimpmx.mpi.info cimport info_is, info_set, info_text
from shrimpmx.mpi.matching cimport TAG_MAX
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_makes, schedule_receive, schedule_round, schedule_send, schedule_tagged,
)
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.topology cimport topology_share
from shrimpmx.mpi.world cimport world, world_adopt, world_connect, world_has_slots
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.native.copy cimport copy_bytes


cdef enum:
    # MPI_COMM_TYPE_SHARED, and from MPI_COMM_TYPE_HW_GUIDED to MPI_COMM_TYPE_RESOURCE_GUIDED
    TYPE_SHARED = 1
    TYPE_HW_GUIDED
    TYPE_HW_UNGUIDED
    TYPE_RESOURCE_GUIDED

cdef:
    const char *RESOURCE_KEY = "mpi_hw_resource_type"
    const char *SHARED_MEMORY = "mpi_shared_memory"


cdef int copy(Comm *parent, uint32_t context, Comm **made) noexcept nogil:
    """With the attributes and the topology; NULL with an error."""
    cdef Comm *comm = comm_make_inter(parent, context, parent.ranks, parent.size, parent.remote,
                                      parent.peers)
    cdef int code
    made[0] = comm
    if comm == NULL:
        return error_detailed(MPI_ERR_NO_MEM, DETAIL_COMMS)
    comm.topology = topology_share(parent.topology)
    code = attributes_copy(parent.attributes, parent.handle, &comm.attributes)
    if code != MPI_SUCCESS:
        attributes_delete(&comm.attributes, comm.handle)
        forget(comm)
        made[0] = NULL
    return code


cdef void forget(Comm *comm) noexcept nogil:
    """It could not be made."""
    call_enter(<EndpointCore>world.core)
    comm_drop(comm)
    call_leave(<EndpointCore>world.core)


cdef int dup(MPI_Comm handle, MPI_Comm *made) noexcept nogil:
    cdef Comm *parent = comm_of(handle)
    cdef Comm *comm
    cdef int code
    if parent == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = copy(parent, agree_on_contexts(parent), &comm)
    made[0] = MPI_COMM_NULL if comm == NULL else comm.handle
    return ended(parent, code)


cdef int dup_with_info(MPI_Comm handle, MPI_Info info, MPI_Comm *made) noexcept nogil:
    return dup(handle, made)


cdef int idup(MPI_Comm handle, MPI_Comm *made, MPI_Request *request) noexcept nogil:
    """Its context comes with the request."""
    cdef Comm *parent = comm_of(handle)
    cdef Comm *comm
    cdef Schedule *schedule
    cdef int code
    made[0] = MPI_COMM_NULL
    request[0] = MPI_REQUEST_NULL
    if parent == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = copy(parent, CONTEXT_LATER, &comm)
    if code != MPI_SUCCESS:
        return error_raise(parent, code)
    if parent.rank == 0 and comm_leads(parent):
        comm.context = contexts_of(parent)
        if comm.context == 0:
            comm.context = CONTEXT_LATER  # for all of them, since the others wait for it
    schedule = begin(parent)
    if schedule == NULL:
        forget(comm)
        return error_raise(parent, MPI_ERR_NO_MEM)
    build_agreement(schedule, &comm.context, sizeof(comm.context))
    schedule_makes(schedule, comm)
    made[0] = comm.handle
    code = run(parent, schedule, request)
    if code != MPI_SUCCESS:
        made[0] = MPI_COMM_NULL
    return ended(parent, code)


cdef int idup_with_info(MPI_Comm handle, MPI_Info info, MPI_Comm *made,
                        MPI_Request *request) noexcept nogil:
    return idup(handle, made, request)


cdef int rank_in(const Comm *comm, int number) noexcept nogil:
    """Of the process with that number in the run; MPI_UNDEFINED: it has no such one."""
    cdef int rank
    if comm == comm_run():
        return number
    for rank in range(comm.size):
        if comm.ranks[rank] == number:
            return rank
    return MPI_UNDEFINED


cdef bint is_part(const Comm *comm, const Group *group) noexcept nogil:
    cdef int rank
    for rank in range(group.size):
        if rank_in(comm, group.ranks[rank]) == MPI_UNDEFINED:
            return False
    return True


cdef int create(MPI_Comm handle, MPI_Group group_handle, MPI_Comm *made) noexcept nogil:
    cdef Comm *parent = comm_of(handle)
    cdef Group *group = group_of(group_handle)
    cdef uint32_t context
    made[0] = MPI_COMM_NULL
    if parent == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if group == NULL:
        return error_raise(parent, MPI_ERR_GROUP)
    if parent.remote != NULL:
        return inter_create(parent, group, made)
    if not is_part(parent, group):
        return error_raise(parent, MPI_ERR_GROUP)
    # Groups of several communicators made at once have no rank in common, and so no message.
    context = agree_on_contexts(parent)
    if group.rank == MPI_UNDEFINED and context != 0:
        contexts_give(context)
        return MPI_SUCCESS
    return comm_made(parent, comm_make(parent, context, group.ranks, group.size), made)


cdef struct Told:            # what the first rank of a group tells the others
    uint32_t context
    char[MPI_MAX_STRINGTAG_LEN] text  # by which the program names the communicator


cdef int make_of_group(Comm *parent, const Group *group, uint32_t tag, const char *text,
                       Comm **made) noexcept nogil:
    """Only the group's ranks call it: the first of them sends a context to the others, as a rank
    of the parent, under the tag. Of two texts with one tag it says so. The code of an error."""
    cdef Schedule *schedule = begin(parent)
    cdef Told told
    cdef int64_t length = sizeof(uint32_t) + strlen(text) + 1
    cdef int rank, code
    told.context = 0
    strcpy(told.text, text)
    made[0] = NULL
    if schedule != NULL:
        schedule_tagged(schedule, tag)
        if group.rank == 0:
            told.context = contexts_take(group.ranks, group.size, NULL, 0)
            for rank in range(1, group.size):
                schedule_send(schedule, rank_in(parent, group.ranks[rank]), &told, length)
        else:
            schedule_receive(schedule, rank_in(parent, group.ranks[0]), &told, sizeof(told))
    code = run(parent, schedule, NULL)
    if code == MPI_SUCCESS and strcmp(told.text, text) != 0:
        code = error_detailed(MPI_ERR_ARG, DETAIL_STRING_TAGS)
    if code != MPI_SUCCESS:
        return code
    made[0] = comm_make(parent, told.context, group.ranks, group.size)
    return made_code(made[0])


cdef int create_group(MPI_Comm handle, MPI_Group group_handle, int tag,
                      MPI_Comm *made) noexcept nogil:
    cdef Comm *parent = comm_intra_of(handle)
    cdef Group *group = group_of(group_handle)
    cdef Comm *comm
    cdef int code
    made[0] = MPI_COMM_NULL
    if parent == NULL:
        return error_raise(comm_of(handle), MPI_ERR_COMM)
    if group == NULL or not 0 <= tag <= TAG_MAX:
        return error_raise(parent, MPI_ERR_GROUP if group == NULL else MPI_ERR_TAG)
    if group.rank == MPI_UNDEFINED:
        return MPI_SUCCESS
    if not is_part(parent, group):
        return error_raise(parent, MPI_ERR_GROUP)
    code = make_of_group(parent, group, tag, "", &comm)
    made[0] = MPI_COMM_NULL if comm == NULL else comm.handle
    return ended(parent, code)


# -- by color and key --------------------------------------------------------------------

cdef struct Wish:            # of a rank, in a split
    int color
    int key
    uint32_t context         # of the rank that leads: for all


cdef int split(MPI_Comm handle, int color, int key, MPI_Comm *made) noexcept nogil:
    """Those of one color, in the order of their keys and ranks."""
    cdef Comm *parent = comm_of(handle)
    cdef Wish own = Wish(color, key, 0)
    cdef Wish *wishes
    cdef int *ranks
    cdef int code = MPI_ERR_NO_MEM
    made[0] = MPI_COMM_NULL
    if parent == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if color < 0 and color != MPI_UNDEFINED:
        return error_raise(parent, MPI_ERR_ARG)
    if parent.rank == 0 and comm_leads(parent):
        own.context = contexts_of(parent)
    wishes = <Wish *>malloc((parent.size + parent.peers) * sizeof(Wish))
    ranks = <int *>malloc((parent.size + parent.peers) * sizeof(int))
    if wishes != NULL and ranks != NULL:
        if parent.remote == NULL:
            code = allgather_bytes(parent, &own, wishes, sizeof(Wish))
        else:
            code = inter_gather(parent, &own, wishes, wishes + parent.size, sizeof(Wish))
    if code == MPI_SUCCESS:
        code = split_by(parent, wishes, color, ranks, made)
    free(wishes)
    free(ranks)
    return ended(parent, code)


cdef int split_by(Comm *parent, const Wish *wishes, int color, int *ranks,
                  MPI_Comm *made) noexcept nogil:
    """Of an inter-communicator both groups need a rank of that color. `ranks`: room for all."""
    # Those of different colors share a context: no two of them have a rank in common.
    cdef uint32_t context = wishes[0 if comm_leads(parent) else parent.size].context
    cdef int *remote = NULL
    cdef Comm *comm
    cdef int size, peers
    if context == 0:
        return made_code(NULL)
    if color == MPI_UNDEFINED:
        contexts_give(context)
        return MPI_SUCCESS
    peers = size = in_order(parent.ranks, parent.size, wishes, color, ranks)
    if parent.remote != NULL:
        remote = ranks + size
        peers = in_order(parent.remote, parent.peers, wishes + parent.size, color, remote)
    if peers == 0:
        contexts_give(context)
        return MPI_SUCCESS
    comm = comm_make_inter(parent, context, ranks, size, remote, peers)
    made[0] = MPI_COMM_NULL if comm == NULL else comm.handle
    return made_code(comm)


cdef int in_order(const int *ranks, int size, const Wish *wishes, int color,
                  int *chosen) noexcept nogil:
    """Ranks in the world of those of `color`, by key; how many. By insertion."""
    cdef int rank, place, count = 0
    for rank in range(size):
        if wishes[rank].color != color:
            continue
        place = count
        while place > 0 and wishes[chosen[place - 1]].key > wishes[rank].key:
            chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = rank
        count += 1
    for place in range(count):
        chosen[place] = ranks[chosen[place]]
    return count


cdef int split_type(MPI_Comm handle, int kind, int key, MPI_Info info,
                    MPI_Comm *made) noexcept nogil:
    """MPI_COMM_TYPE_SHARED: the ranks of one emulated node. MPI_COMM_TYPE_HW_UNGUIDED: the same, if
    they are fewer, whose resource `info` then names (MPI 4.1, 7.4.2). Of resources
    mpi_shared_memory alone has a name, for the same; any other gives MPI_COMM_NULL."""
    cdef Comm *parent = comm_of(handle)
    cdef bint by_node = kind == TYPE_SHARED or kind == TYPE_HW_UNGUIDED
    cdef const char *named
    cdef Comm *comm
    cdef int code
    made[0] = MPI_COMM_NULL
    if parent == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if not TYPE_SHARED <= kind <= TYPE_RESOURCE_GUIDED and kind != MPI_UNDEFINED:
        return error_raise(parent, MPI_ERR_ARG)
    if not info_is(info):
        return error_raise(parent, MPI_ERR_INFO)
    if kind == TYPE_HW_GUIDED or kind == TYPE_RESOURCE_GUIDED:
        named = info_text(info, RESOURCE_KEY)
        by_node = named != NULL and strcmp(named, SHARED_MEMORY) == 0
    code = split(handle, world.nodes[world.rank] if by_node else MPI_UNDEFINED, key, made)
    comm = comm_of(made[0])
    if kind == TYPE_HW_UNGUIDED and comm != NULL and comm.size == parent.size:
        forget(comm)
        made[0] = MPI_COMM_NULL
    elif kind == TYPE_HW_UNGUIDED and comm != NULL and info != MPI_INFO_NULL:
        code = info_set(info, RESOURCE_KEY, SHARED_MEMORY)
    return code


cdef void comm_create_fill(mpi_table *table) noexcept nogil:
    table.Comm_dup = dup
    table.Comm_dup_with_info = dup_with_info
    table.Comm_idup = idup
    table.Comm_idup_with_info = idup_with_info
    table.Comm_create = create
    table.Comm_create_group = create_group
    table.Comm_split = split
    table.Comm_split_type = split_type


# -- Inter-communicators (MPI 3.1, 6.6).
#
# Both groups use the same contexts: a message goes from a rank of one group to a rank of the other,
# and names the sender's rank in its own group. What a group has to know of itself alone goes to the
# other one and comes back.

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
    copy_bytes(own + 1, group.ranks, group.size * sizeof(int))
    code = swap(parent, own, (1 + group.size) * sizeof(int), theirs,
                (1 + parent.peers) * sizeof(int))
    context = agree_on_contexts(parent)
    if code == MPI_SUCCESS and context == 0:
        code = made_code(NULL)
    elif code == MPI_SUCCESS and group.rank != MPI_UNDEFINED and theirs[0] > 0:
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
    copy_bytes(ranks if first else ranks + inter.peers, inter.ranks, inter.size * sizeof(int))
    copy_bytes(ranks + inter.size if first else ranks, inter.remote, inter.peers * sizeof(int))
    comm = comm_make(inter, context, ranks, inter.size + inter.peers)
    free(ranks)
    return comm_made(inter, comm, made)


cdef inline int made_code(const Comm *comm) noexcept nogil:
    return MPI_SUCCESS if comm != NULL else error_detailed(MPI_ERR_NO_MEM, DETAIL_COMMS)


# -- from two communicators ------------------------------------------------------------------

cdef struct Side:            # what the leader of a group tells the other one
    uint32_t context         # 0: it is the other one that takes them
    int code                 # an error that the leader has met
    int leader               # of the other group, by its number in the run; what follows is own
    bint connects            # it is this group whose ranks connect to the others
    int size                 # of the group, whose ranks in the world follow


cdef inline int *ranks_of(Side *side) noexcept nogil:
    return <int *>(side + 1)


cdef int number_of_peer(const Comm *peer, int rank) noexcept nogil:
    """In the run."""
    if peer == comm_run():
        return rank
    return peer.ranks[rank] if peer.remote == NULL else peer.remote[rank]


cdef int lead(Comm *local, Comm *peer, int remote_leader, int tag, Connecting connecting,
              Side *theirs, int64_t room) noexcept nogil:
    """The leaders exchange what they know: the class of an error."""
    cdef Schedule *schedule
    cdef Side *own
    cdef int leader, code, users
    cdef bint counted, connects
    if peer == NULL:
        return MPI_ERR_COMM
    if <unsigned int>remote_leader >= <unsigned int>peer.peers:
        return MPI_ERR_RANK
    if not 0 <= tag <= TAG_MAX:
        return MPI_ERR_TAG
    own = <Side *>malloc(room)
    if own == NULL:
        return MPI_ERR_NO_MEM
    leader = number_of_peer(peer, remote_leader)
    connects = (world.rank > leader if connecting == CONNECTING_BY_NUMBER
                else connecting == CONNECTING)
    code = world_connect(&leader, 1) if connects else world_adopt(&leader, 1)
    if code != MPI_SUCCESS:
        free(own)
        return code
    own.context = 0
    if world.rank < leader:
        own.context = contexts_take(local.ranks, local.size, NULL, 0)
        counted = own.context != 0
    else:
        counted = comms_count(local.ranks, local.size)
    if own.context != 0:  # how many processes the other group has is known later
        contexts_share(own.context, 2 * world.size - local.size)
    own.code = MPI_SUCCESS if counted else MPI_ERR_NO_MEM
    own.size = local.size
    copy_bytes(ranks_of(own), local.ranks, local.size * sizeof(int))
    schedule = begin(peer)
    if schedule != NULL:
        schedule_tagged(schedule, tag)
        if not connects and world_has_slots():
            # Connected when the other one's message is there.
            schedule_receive(schedule, remote_leader, theirs, room)
            schedule_round(schedule)
        schedule_send(schedule, remote_leader, own, sizeof(Side) + local.size * sizeof(int))
        if connects or not world_has_slots():
            schedule_receive(schedule, remote_leader, theirs, room)
    code = run(peer, schedule, NULL)
    theirs.leader, theirs.connects = leader, connects
    if code == MPI_SUCCESS:
        code = max(own.code, theirs.code)
    if own.context != 0:
        users = own.size + theirs.size if code == MPI_SUCCESS else 0
        contexts_share(own.context, users - 2 * world.size)
    if counted and code != MPI_SUCCESS:
        comms_uncount(local.ranks, local.size)
    theirs.context = max(own.context, theirs.context)
    free(own)
    return code


cdef int intercomm_create(MPI_Comm handle, int leader, MPI_Comm peer, int remote_leader, int tag,
                          MPI_Comm *made) noexcept nogil:
    cdef Comm *local = comm_intra_of(handle)
    made[0] = MPI_COMM_NULL
    if local == NULL:
        return error_raise(comm_of(handle), MPI_ERR_COMM)
    if <unsigned int>leader >= <unsigned int>local.size:
        return error_raise(local, MPI_ERR_RANK)
    return ended(local, intercomm_between(local, leader, comm_of(peer), remote_leader, tag,
                                          CONNECTING_BY_NUMBER, made))


cdef int connect_groups(Comm *local, int leader, int tag, Side *theirs) noexcept nogil:
    """A partner that both sides connect to at once may lose what it was sent meanwhile, if another
    process had its endpoint before. So one group connects, and its leader tells the other one.
    """
    cdef Schedule *schedule
    cdef int code = MPI_SUCCESS, told = 0
    if theirs.connects:
        code = world_connect(ranks_of(theirs), theirs.size)
        told = barrier_on(local)
    if local.rank == leader:
        schedule = begin(comm_run())
        if schedule != NULL:
            schedule_tagged(schedule, tag)
            if theirs.connects:
                schedule_send(schedule, theirs.leader, &told, sizeof(told))
            else:
                schedule_receive(schedule, theirs.leader, &told, sizeof(told))
        told = run(comm_run(), schedule, NULL)
    if not theirs.connects:
        code = broadcast_bytes(local, &told, sizeof(told), leader)
        if code == MPI_SUCCESS:
            code = world_adopt(ranks_of(theirs), theirs.size)
    return max(code, told)


cdef int intercomm_between(Comm *local, int leader, Comm *peer, int remote_leader, int tag,
                           Connecting connecting, MPI_Comm *made) noexcept nogil:
    cdef Comm *comm = NULL
    cdef Side *theirs
    cdef int64_t room = sizeof(Side) + world.size * sizeof(int)
    cdef int code
    made[0] = MPI_COMM_NULL
    theirs = <Side *>malloc(room)
    if theirs == NULL:
        return MPI_ERR_NO_MEM
    if local.rank == leader:
        theirs.code = lead(local, peer, remote_leader, tag, connecting, theirs, room)
    code = broadcast_bytes(local, theirs, room, leader)
    if code == MPI_SUCCESS:
        code = theirs.code
    if code == MPI_ERR_NO_MEM:
        code = made_code(NULL)
    if code == MPI_SUCCESS and world_has_slots():
        code = connect_groups(local, leader, tag, theirs)
    if code == MPI_SUCCESS:
        comm = comm_make_inter(local, theirs.context, local.ranks, local.size, ranks_of(theirs),
                               theirs.size)
        code = made_code(comm)
    made[0] = MPI_COMM_NULL if comm == NULL else comm.handle
    free(theirs)
    return code


# -- from groups alone (MPI 4.1, 7.4.2, 7.6.2) ---------------------------------------------------

cdef uint32_t tag_of(const char *text) noexcept nogil:
    """On the communicator of the run, by FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv)."""
    cdef uint32_t hashed = 2166136261
    while text[0] != 0:
        hashed = (hashed ^ <uint8_t>text[0]) * 16777619
        text += 1
    return TAG_GROUPS | hashed & (TAG_MAX - TAG_GROUPS)


cdef int check_group(const Group *group, const char *text, MPI_Info info) noexcept nogil:
    if group == NULL or group.rank == MPI_UNDEFINED:
        return MPI_ERR_GROUP
    if strlen(text) >= MPI_MAX_STRINGTAG_LEN:
        return error_detailed(MPI_ERR_ARG, DETAIL_STRING_TAGS)
    return MPI_SUCCESS if info_is(info) else MPI_ERR_INFO


cdef int made_of_group(const Group *group, Comm *comm, MPI_Errhandler handler, int code,
                       MPI_Comm *made) noexcept nogil:
    """The end of a call; NULL: it has met an error."""
    if comm == NULL:
        return error_by_handler(handler, code)
    call_enter(<EndpointCore>world.core)
    comm_handler_set(comm, handler)
    comm.session = group.session
    call_leave(<EndpointCore>world.core)
    made[0] = comm.handle
    return MPI_SUCCESS


cdef int create_from_group(MPI_Group group_handle, const char *text, MPI_Info info,
                           MPI_Errhandler handler, MPI_Comm *made) noexcept nogil:
    cdef Group *group = group_of(group_handle)
    cdef Comm *comm = NULL
    cdef int code
    made[0] = MPI_COMM_NULL
    if not handler_of_comms(handler):
        return error_of_session(NULL if group == NULL else group.session, MPI_ERR_ARG)
    if group_handle == MPI_GROUP_EMPTY:
        return MPI_SUCCESS
    code = check_group(group, text, info)
    if code == MPI_SUCCESS:
        code = make_of_group(comm_run(), group, tag_of(text), text, &comm)
    return made_of_group(group, comm, handler, code, made)


cdef int intercomm_create_from_groups(
        MPI_Group group_handle, int leader, MPI_Group remote_handle, int remote_leader,
        const char *text, MPI_Info info, MPI_Errhandler handler, MPI_Comm *made) noexcept nogil:
    """The remote group counts at the leader only."""
    cdef Group *group = group_of(group_handle)
    cdef Group *remote = group_of(remote_handle)
    cdef Comm *local = NULL
    cdef MPI_Comm between = MPI_COMM_NULL
    cdef int code, far = MPI_UNDEFINED
    made[0] = MPI_COMM_NULL
    if not handler_of_comms(handler):
        return error_of_session(NULL if group == NULL else group.session, MPI_ERR_ARG)
    code = check_group(group, text, info)
    if code == MPI_SUCCESS and <unsigned int>leader >= <unsigned int>group.size:
        code = MPI_ERR_RANK
    if code == MPI_SUCCESS:
        code = make_of_group(comm_run(), group, tag_of(text), text, &local)
    if code == MPI_SUCCESS:
        if remote != NULL and <unsigned int>remote_leader < <unsigned int>remote.size:
            far = remote.ranks[remote_leader]
        code = intercomm_between(local, leader, comm_run(), far, tag_of(text),
                                 CONNECTING_BY_NUMBER, &between)
        forget(local)
    return made_of_group(group, comm_of(between), handler, code, made)


cdef void intercomm_fill(mpi_table *table) noexcept nogil:
    table.Comm_create_from_group = create_from_group
    table.Intercomm_create = intercomm_create
    table.Intercomm_create_from_groups = intercomm_create_from_groups
    table.Intercomm_merge = merge
