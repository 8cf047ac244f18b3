"""Records of communicators, their contexts, and queries about them (MPI 3.1, chapter 6).

The ranks of a new communicator agree on its contexts without a search: one rank of its parent takes
a set of them from the run's memory, and tells the others. A set comes again when no process uses it
any more, and all other sets have had their turn.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strlen, strncpy

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_NULL, MPI_COMM_SELF, MPI_COMM_WORLD, MPI_CONGRUENT,
    MPI_ERRORS_ARE_FATAL, MPI_ERR_COMM, MPI_ERR_NO_MEM, MPI_IDENT, MPI_MAX_OBJECT_NAME, MPI_SIMILAR,
    MPI_SUCCESS, MPI_UNEQUAL, MPI_Comm, MPI_Group,
)
from shrimpmx.mpi.attribute cimport attributes_delete
from shrimpmx.mpi.collective_calls cimport barrier_on, begin, run
from shrimpmx.mpi.comm_create cimport build_agreement
from shrimpmx.mpi.error cimport (
    DETAIL_COMMS, ended, error_detailed, error_raise, handler_drop, handler_keep,
)
from shrimpmx.mpi.group cimport group_make
from shrimpmx.mpi.matching cimport match_bits, match_mask
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.schedule cimport Schedule
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.topology cimport topology_drop
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave, call_peek, call_receive, call_release
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.partner cimport ack_flush_all
from shrimpmx.mx.types cimport REQUEST_LARGE, REQUEST_PARTIAL, MxPartner, MxRequest
from shrimpmx.native.atomics cimport compare_exchange_u32, fetch_add_u32, load_acquire_u32
from shrimpmx.native.copy cimport copy_bytes
from shrimpmx.shared.section cimport CONTEXT_SETS


cdef enum:
    COMMS = 65536
    # Handles; more than that, since a communicator is counted after MPI_Comm_idup has made it.
    HANDLES = COMMS + 4096
    HANDLE = <int>0x84000000
    NUMBER = 0x03FFFFFF
    # The first contexts of world, of self, of the run, and of all others. No two worlds of a run
    # send each other anything in theirs.
    WORLD_FIRST = 0
    SELF_FIRST = CONTEXTS
    RUN_FIRST = 2 * CONTEXTS
    OTHERS_FIRST = 3 * CONTEXTS
    # The sets of these three, which are never taken.
    OWN_SETS = 3

cdef:
    Comm *comms[HANDLES]        # [number]; NULL: never made
    Numbers numbers


cdef int comm_start() except -1:
    world.comm_world = calloc(1, sizeof(Comm))
    world.comm_self = calloc(1, sizeof(Comm))
    world.comm_run = calloc(1, sizeof(Comm))
    if world.comm_world == NULL or world.comm_self == NULL or world.comm_run == NULL:
        raise MemoryError
    if (not prepare(comm_world(), MPI_COMM_WORLD, WORLD_FIRST, world.members, world.members_count,
                    NULL, world.members_count)
            or not prepare(comm_self(), MPI_COMM_SELF, SELF_FIRST, &world.rank, 1, NULL, 1)):
        raise MemoryError
    comm_run().context = RUN_FIRST
    comm_run().rank = world.rank
    comm_run().size = comm_run().peers = world.size
    comm_run().partners = world.partners
    comm_run().uses = 1
    comm_run().error_handler = MPI_ERRORS_ARE_FATAL
    strncpy(comm_run().name, "the run", MPI_MAX_OBJECT_NAME)
    strncpy(comm_world().name, "MPI_COMM_WORLD", MPI_MAX_OBJECT_NAME)
    strncpy(comm_self().name, "MPI_COMM_SELF", MPI_MAX_OBJECT_NAME)
    return 0


cdef Comm *comm_run() noexcept nogil:
    return <Comm *>world.comm_run


cdef bint prepare(Comm *comm, MPI_Comm handle, uint32_t context, const int *ranks, int size,
                  const int *remote, int peers) noexcept nogil:
    """False without memory."""
    cdef const int *reached = remote if remote != NULL else ranks
    cdef int rank
    memset(comm, 0, sizeof(Comm))
    comm.ranks = <int *>malloc((size + peers) * sizeof(int))
    comm.partners = <MxPartner **>malloc(peers * sizeof(MxPartner *))
    if comm.ranks == NULL or comm.partners == NULL:
        free(comm.ranks)
        free(comm.partners)
        return False
    copy_bytes(comm.ranks, ranks, size * sizeof(int))
    comm.size = size
    for rank in range(size):
        if ranks[rank] == world.rank:
            comm.rank = rank
    if remote != NULL:
        comm.remote = comm.ranks + size
        copy_bytes(comm.remote, remote, peers * sizeof(int))
    comm.peers = peers
    for rank in range(peers):
        comm.partners[rank] = world.partners[reached[rank]]
    comm.context = context
    comm.uses = 1
    comm.error_handler = MPI_ERRORS_ARE_FATAL
    comm.handle = handle
    return True


cdef Comm *comm_other(MPI_Comm handle) noexcept nogil:
    cdef int number = handle & NUMBER
    if (handle & ~NUMBER) != HANDLE or number >= HANDLES or comms[number] == NULL:
        return NULL
    return comms[number] if comms[number].handle == handle and not comms[number].freed else NULL


cdef Comm *comm_of_context(uint32_t context) noexcept nogil:
    cdef int number
    if context < SELF_FIRST:
        return comm_world()
    if context < RUN_FIRST:
        return comm_self()
    if context < OTHERS_FIRST:
        return <Comm *>world.comm_run
    for number in range(numbers.fresh):
        if comms[number] == NULL:
            continue
        if comms[number].handle != 0 and context - comms[number].context < CONTEXTS:
            return comms[number]
    return NULL


cdef void comm_drop(Comm *comm) noexcept nogil:
    cdef int number
    comm.uses -= 1
    if comm.uses == 0:
        handler_drop(comm.error_handler)
        free(comm.ranks)
        free(comm.partners)
        topology_drop(comm.topology)
        if comm.context != CONTEXT_LATER:
            forget_messages(comm.context)
            contexts_give(comm.context)
        comm.ranks = NULL
        comm.partners = NULL
        number = comm.handle & NUMBER
        comm.handle = 0
        number_give(&numbers, number)


cdef void forget_messages(uint32_t first) noexcept nogil:
    """Whole ones that no receive has matched: one of the next user of the contexts must not."""
    cdef uint64_t mask = match_mask(MPI_ANY_SOURCE, MPI_ANY_TAG)
    cdef uint64_t match
    cdef uint32_t context
    cdef MxRequest *message
    for context in range(first, first + CONTEXTS):
        match = match_bits(context, 0, 0)
        message = call_peek(<EndpointCore>world.core, match, mask)
        while message != NULL and not message.flags & (REQUEST_LARGE | REQUEST_PARTIAL):
            message = call_receive(<EndpointCore>world.core, NULL, 0, match, mask)
            if message == NULL:
                return
            call_release(<EndpointCore>world.core, message)
            message = call_peek(<EndpointCore>world.core, match, mask)


cdef Comm *comm_make(Comm *parent, uint32_t context, const int *ranks, int size) noexcept nogil:
    return comm_make_inter(parent, context, ranks, size, NULL, size)


cdef Comm *comm_make_inter(Comm *parent, uint32_t context, const int *ranks, int size,
                           const int *remote, int peers) noexcept nogil:
    cdef Comm *comm = NULL
    cdef int number
    if context == 0:
        return NULL
    call_enter(<EndpointCore>world.core)
    number = number_take(&numbers, HANDLES)
    if number >= 0 and comms[number] == NULL:
        comms[number] = <Comm *>calloc(1, sizeof(Comm))
    if number >= 0 and comms[number] != NULL:
        if prepare(comms[number], HANDLE | number, context, ranks, size, remote, peers):
            comm = comms[number]
            comm.error_handler = parent.error_handler
            handler_keep(comm.error_handler)
            comm.session = parent.session
    if comm == NULL:
        contexts_give(context)
        if number >= 0:
            number_give(&numbers, number)
    call_leave(<EndpointCore>world.core)
    return comm


cdef void comm_handler_set(Comm *comm, int handler) noexcept nogil:
    handler_keep(handler)
    handler_drop(comm.error_handler)
    comm.error_handler = handler


cdef bint comms_count(const int *ranks, int size) noexcept nogil:
    cdef int rank
    for rank in range(size):
        if fetch_add_u32(world.comm_counts[ranks[rank]], 1) >= COMMS:
            comms_uncount(ranks, rank + 1)
            return False
    return True


cdef void comms_uncount(const int *ranks, int size) noexcept nogil:
    cdef int rank
    for rank in range(size):
        fetch_add_u32(world.comm_counts[ranks[rank]], <uint32_t>-1)


cdef uint32_t contexts_take(const int *ranks, int size, const int *others,
                            int others_size) noexcept nogil:
    cdef uint32_t number
    cdef int _turn
    if not comms_count(ranks, size):
        return 0
    if comms_count(others, others_size):
        for _turn in range(CONTEXT_SETS):
            number = fetch_add_u32(world.contexts, 1) % CONTEXT_SETS
            if (number >= OWN_SETS and load_acquire_u32(&world.context_uses[number]) == 0
                    and compare_exchange_u32(&world.context_uses[number], 0, size + others_size)):
                return number * CONTEXTS
        comms_uncount(others, others_size)
    comms_uncount(ranks, size)
    return 0


cdef void contexts_give(uint32_t first) noexcept nogil:
    if first != 0 and first != CONTEXT_LATER:
        contexts_share(first, -1)
        comms_uncount(&world.rank, 1)


cdef uint32_t contexts_of(const Comm *parent) noexcept nogil:
    return contexts_take(parent.ranks, parent.size, parent.remote,
                         0 if parent.remote == NULL else parent.peers)


cdef void contexts_share(uint32_t first, int shares) noexcept nogil:
    fetch_add_u32(&world.context_uses[first // CONTEXTS], <uint32_t>shares)


cdef uint32_t agree_on_contexts(Comm *parent) noexcept nogil:
    cdef Schedule *schedule
    cdef uint32_t first = 0
    if parent.rank == 0 and comm_leads(parent):
        first = contexts_of(parent)
    schedule = begin(parent)
    if schedule != NULL:
        build_agreement(schedule, &first, sizeof(first))
    run(parent, schedule, NULL)
    return first


cdef int comm_made(Comm *parent, Comm *comm, MPI_Comm *made) noexcept nogil:
    made[0] = MPI_COMM_NULL
    if comm == NULL:
        return error_raise(parent, error_detailed(MPI_ERR_NO_MEM, DETAIL_COMMS))
    made[0] = comm.handle
    return MPI_SUCCESS


cdef int free_comm(MPI_Comm *handle) noexcept nogil:
    cdef Comm *comm = comm_of(handle[0])
    cdef int code
    if comm == NULL or comm == comm_world() or comm == comm_self():
        return error_raise(NULL, MPI_ERR_COMM)
    code = attributes_delete(&comm.attributes, handle[0])
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    call_enter(<EndpointCore>world.core)
    comm.freed = True
    comm_drop(comm)
    call_leave(<EndpointCore>world.core)
    if handle[0] == world.parent:
        world.parent = MPI_COMM_NULL
    handle[0] = MPI_COMM_NULL
    return MPI_SUCCESS


cdef int disconnect(MPI_Comm *handle) noexcept nogil:
    """Processes of other worlds are no longer waited for in MPI_Finalize, if no other communicator
    has them (MPI 4.1, 11.10.4). All have left their collectives on it then.
    """
    cdef Comm *comm = comm_of(handle[0])
    cdef bint is_within = comm == NULL or comm == comm_world() or comm == comm_self() or (
        all_begun(comm.ranks, comm.size)
        and (comm.remote == NULL or all_begun(comm.remote, comm.peers)))
    cdef int code = MPI_SUCCESS if is_within else barrier_on(comm)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    code = free_comm(handle)
    if code == MPI_SUCCESS and not is_within:
        call_enter(<EndpointCore>world.core)
        ack_flush_all((<EndpointCore>world.core).library)
        forget_strangers()
        call_leave(<EndpointCore>world.core)
    return code


cdef bint all_begun(const int *ranks, int size) noexcept nogil:
    """Whether this process has begun together with all of these."""
    cdef int rank
    for rank in range(size):
        if not has_begun(ranks[rank]):
            return False
    return True


cdef bint has_begun(int number) noexcept nogil:
    cdef int rank
    for rank in range(world.members_count):
        if world.members[rank] == number:
            return True
    return False


cdef void forget_strangers() noexcept nogil:
    """Those that no communicator of this process has. Under the lock."""
    cdef int number
    for number in range(world.size):
        if world.pids[number] != 0 and not has_begun(number) and not is_reached(number):
            world.pids[number] = 0


cdef bint is_reached(int number) noexcept nogil:
    cdef const Comm *comm
    cdef int each, rank
    for each in range(numbers.fresh):
        comm = comms[each]
        if comm == NULL or comm.handle == 0:
            continue
        for rank in range(comm.size):
            if comm.ranks[rank] == number:
                return True
        for rank in range(comm.peers if comm.remote != NULL else 0):
            if comm.remote[rank] == number:
                return True
    return False


cdef void comm_fill(mpi_table *table) noexcept nogil:
    table.Comm_free = free_comm
    table.Comm_disconnect = disconnect


# -- What a communicator is: its groups, its name, and whether it is like another one.

cdef int comm_size(MPI_Comm handle, int *size) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    size[0] = comm.size
    return MPI_SUCCESS


cdef int comm_rank(MPI_Comm handle, int *rank) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    rank[0] = comm.rank
    return MPI_SUCCESS


cdef int comm_group(MPI_Comm handle, MPI_Group *made) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    return ended(comm, group_make(comm.ranks, comm.size, comm.session, made))


cdef int test_inter(MPI_Comm handle, int *flag) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    flag[0] = comm.remote != NULL
    return MPI_SUCCESS


cdef int remote_size(MPI_Comm handle, int *size) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL or comm.remote == NULL:
        return error_raise(comm, MPI_ERR_COMM)
    size[0] = comm.peers
    return MPI_SUCCESS


cdef int remote_group(MPI_Comm handle, MPI_Group *made) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL or comm.remote == NULL:
        return error_raise(comm, MPI_ERR_COMM)
    return ended(comm, group_make(comm.remote, comm.peers, comm.session, made))


cdef int compare(MPI_Comm handle, MPI_Comm other_handle, int *result) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Comm *other = comm_of(other_handle)
    if comm == NULL or other == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if comm == other:
        result[0] = MPI_IDENT
    elif (comm.remote == NULL) != (other.remote == NULL):
        result[0] = MPI_UNEQUAL
    else:
        result[0] = compare_ranks(comm.ranks, comm.size, other.ranks, other.size)
        if comm.remote != NULL:
            result[0] = max(result[0], compare_ranks(comm.remote, comm.peers, other.remote,
                                                     other.peers))
    return MPI_SUCCESS


cdef int compare_ranks(const int *ranks, int size, const int *others,
                       int others_size) noexcept nogil:
    """As the groups of two communicators; the results count on from the most alike."""
    cdef int rank, place, result = MPI_CONGRUENT
    if size != others_size:
        return MPI_UNEQUAL
    for rank in range(size):
        if ranks[rank] == others[rank]:
            continue
        result = MPI_SIMILAR
        place = 0
        while place < size and others[place] != ranks[rank]:
            place += 1
        if place == size:
            return MPI_UNEQUAL
    return result


cdef int get_name(MPI_Comm handle, char *name, int *length) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef const char *text = b"MPI_COMM_NULL"
    if comm == NULL and handle != MPI_COMM_NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if comm != NULL:
        text = comm.name
    length[0] = <int>strlen(text)
    memcpy(name, text, length[0] + 1)
    return MPI_SUCCESS


cdef int set_name(MPI_Comm handle, const char *name) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    # A longer one is cut (MPI 3.1, 6.8).
    strncpy(comm.name, name, MPI_MAX_OBJECT_NAME - 1)
    return MPI_SUCCESS


cdef void comm_query_fill(mpi_table *table) noexcept nogil:
    table.Comm_size = comm_size
    table.Comm_rank = comm_rank
    table.Comm_group = comm_group
    table.Comm_test_inter = test_inter
    table.Comm_remote_size = remote_size
    table.Comm_remote_group = remote_group
    table.Comm_compare = compare
    table.Comm_get_name = get_name
    table.Comm_set_name = set_name
