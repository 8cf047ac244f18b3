"""Communicators within one group (MPI 3.1, 6.4).

The ranks of a new communicator agree on its context without a search: rank 0 of its parent takes
numbers from a counter in the run's memory that all ranks share, and broadcasts the first of them.
No context is used twice.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strlen, strncpy

from shrimpmx.mpi.abi cimport (
    MPI_COMM_NULL, MPI_COMM_SELF, MPI_COMM_WORLD, MPI_CONGRUENT, MPI_Comm, MPI_ERR_ARG,
    MPI_ERR_COMM, MPI_ERR_GROUP, MPI_ERR_NO_MEM, MPI_ERRORS_ARE_FATAL, MPI_Group, MPI_IDENT,
    MPI_Info, MPI_MAX_OBJECT_NAME, MPI_SIMILAR, MPI_SUCCESS, MPI_UNDEFINED, MPI_UNEQUAL,
)
from shrimpmx.mpi.attribute cimport attributes_copy, attributes_delete
from shrimpmx.mpi.collective cimport allgather_bytes, broadcast_bytes
from shrimpmx.mpi.error cimport error_raise, handler_drop, handler_keep
from shrimpmx.mpi.group cimport Group, group_make, group_of
from shrimpmx.mpi.matching cimport CONTEXT_MAX
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.topology cimport topology_drop, topology_share
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.types cimport MxPartner
from shrimpmx.native.atomics cimport fetch_add_u32

cdef enum:
    COMMS = 65536
    HANDLE = <int>0x84000000
    NUMBER = 0x03FFFFFF
    # The contexts of world and self; each communicator has two.
    CONTEXT_WORLD = 0
    CONTEXT_SELF = 2
    CONTEXT_FIRST = 4
    # MPI_COMM_TYPE_SHARED
    TYPE_SHARED = 1

cdef:
    Comm *comms[COMMS]          # [number]; NULL: never made


cdef int comm_start() except -1:
    cdef int rank
    cdef int *ranks = <int *>malloc(world.size * sizeof(int))
    world.comm_world = calloc(1, sizeof(Comm))
    world.comm_self = calloc(1, sizeof(Comm))
    if ranks == NULL or world.comm_world == NULL or world.comm_self == NULL:
        raise MemoryError
    for rank in range(world.size):
        ranks[rank] = rank
    if (not prepare(comm_world(), MPI_COMM_WORLD, CONTEXT_WORLD, ranks, world.size)
            or not prepare(comm_self(), MPI_COMM_SELF, CONTEXT_SELF, &world.rank, 1)):
        raise MemoryError
    free(ranks)
    strncpy(comm_world().name, "MPI_COMM_WORLD", MPI_MAX_OBJECT_NAME)
    strncpy(comm_self().name, "MPI_COMM_SELF", MPI_MAX_OBJECT_NAME)
    return 0


cdef bint prepare(Comm *comm, MPI_Comm handle, uint32_t context, const int *ranks,
                  int size) noexcept nogil:
    """False without memory."""
    cdef int rank
    memset(comm, 0, sizeof(Comm))
    comm.ranks = <int *>malloc(size * sizeof(int))
    comm.partners = <MxPartner **>malloc(size * sizeof(MxPartner *))
    if comm.ranks == NULL or comm.partners == NULL:
        free(comm.ranks)
        free(comm.partners)
        return False
    memcpy(comm.ranks, ranks, size * sizeof(int))
    comm.context = context
    comm.size = size
    comm.uses = 1
    comm.error_handler = MPI_ERRORS_ARE_FATAL
    for rank in range(size):
        comm.partners[rank] = world.partners[ranks[rank]]
        if ranks[rank] == world.rank:
            comm.rank = rank
    comm.handle = handle
    return True


cdef Comm *comm_other(MPI_Comm handle) noexcept nogil:
    cdef int number = handle & NUMBER
    if (handle & ~NUMBER) != HANDLE or number >= COMMS or comms[number] == NULL:
        return NULL
    return comms[number] if comms[number].handle == handle and not comms[number].freed else NULL


cdef void comm_drop(Comm *comm) noexcept nogil:
    comm.uses -= 1
    if comm.uses == 0:
        handler_drop(comm.error_handler)
        free(comm.ranks)
        free(comm.partners)
        topology_drop(comm.topology)
        comm.ranks = NULL
        comm.partners = NULL
        comm.handle = 0


cdef Comm *comm_make(Comm *parent, uint32_t context, const int *ranks, int size) noexcept nogil:
    """A communicator of those processes of the world, with its parent's error handler; or NULL."""
    cdef Comm *comm = NULL
    cdef int number = 0
    call_enter(<EndpointCore>world.core)
    while number < COMMS and comms[number] != NULL and comms[number].handle != 0:
        number += 1
    if number < COMMS and comms[number] == NULL:
        comms[number] = <Comm *>calloc(1, sizeof(Comm))
    if number < COMMS and comms[number] != NULL:
        if prepare(comms[number], HANDLE | number, context, ranks, size):
            comm = comms[number]
            comm.error_handler = parent.error_handler
            handler_keep(comm.error_handler)
    call_leave(<EndpointCore>world.core)
    return comm


cdef uint32_t agree_on_contexts(Comm *parent, int count) noexcept nogil:
    """The first of `count` pairs of contexts that no communicator has had; 0: there are no more."""
    cdef uint32_t first = 0
    if parent.rank == 0:
        first = CONTEXT_FIRST + 2 * fetch_add_u32(world.contexts, count)
        if first + 2 * count > CONTEXT_MAX:
            first = 0
    broadcast_bytes(parent, &first, sizeof(first), 0)
    return first


cdef int finish(Comm *parent, Comm *comm, MPI_Comm *made) noexcept nogil:
    made[0] = MPI_COMM_NULL
    if comm == NULL:
        return error_raise(parent, MPI_ERR_NO_MEM)
    made[0] = comm.handle
    return MPI_SUCCESS


# -- new communicators ---------------------------------------------------------------

cdef int dup(MPI_Comm handle, MPI_Comm *made) noexcept nogil:
    cdef Comm *parent = comm_of(handle)
    cdef Comm *comm = NULL
    cdef uint32_t context
    cdef int code
    if parent == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    context = agree_on_contexts(parent, 1)
    if context != 0:
        comm = comm_make(parent, context, parent.ranks, parent.size)
    if comm != NULL:
        comm.topology = topology_share(parent.topology)
        code = attributes_copy(parent.attributes, handle, &comm.attributes)
        if code != MPI_SUCCESS:
            return error_raise(parent, code)
    return finish(parent, comm, made)


cdef int dup_with_info(MPI_Comm handle, MPI_Info info, MPI_Comm *made) noexcept nogil:
    return dup(handle, made)


cdef int create(MPI_Comm handle, MPI_Group group_handle, MPI_Comm *made) noexcept nogil:
    cdef Comm *parent = comm_of(handle)
    cdef Group *group = group_of(group_handle)
    cdef uint32_t context
    if parent == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if group == NULL:
        return error_raise(parent, MPI_ERR_GROUP)
    # Groups of several communicators made at once have no rank in common, and so no message.
    context = agree_on_contexts(parent, 1)
    made[0] = MPI_COMM_NULL
    if group.rank == MPI_UNDEFINED:
        return MPI_SUCCESS
    return finish(parent, NULL if context == 0 else
                  comm_make(parent, context, group.ranks, group.size), made)


cdef struct Wish:            # of a rank, in a split
    int color
    int key


cdef int split(MPI_Comm handle, int color, int key, MPI_Comm *made) noexcept nogil:
    """Those of one color, in the order of their keys and ranks (MPI 3.1, 6.4.2)."""
    cdef Comm *parent = comm_of(handle)
    cdef Comm *comm = NULL
    cdef Wish own
    cdef Wish *wishes
    cdef int *ranks
    cdef uint32_t context
    cdef int size
    if parent == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if color < 0 and color != MPI_UNDEFINED:
        return error_raise(parent, MPI_ERR_ARG)
    own.color = color
    own.key = key
    wishes = <Wish *>malloc(parent.size * sizeof(Wish))
    ranks = <int *>malloc(parent.size * sizeof(int))
    if wishes == NULL or ranks == NULL:
        free(wishes)
        free(ranks)
        return error_raise(parent, MPI_ERR_NO_MEM)
    allgather_bytes(parent, &own, wishes, sizeof(Wish))
    # Those of different colors share a context: no two of them have a rank in common.
    context = agree_on_contexts(parent, 1)
    made[0] = MPI_COMM_NULL
    if color != MPI_UNDEFINED and context != 0:
        size = in_order(parent, wishes, color, ranks)
        comm = comm_make(parent, context, ranks, size)
    free(wishes)
    free(ranks)
    return MPI_SUCCESS if color == MPI_UNDEFINED else finish(parent, comm, made)


cdef int in_order(const Comm *parent, const Wish *wishes, int color, int *ranks) noexcept nogil:
    """Ranks in the world of those of `color`, by key; how many. By insertion."""
    cdef int rank, place, size = 0
    cdef int *order = <int *>malloc(parent.size * sizeof(int))
    if order == NULL:
        return 0
    for rank in range(parent.size):
        if wishes[rank].color != color:
            continue
        place = size
        while place > 0 and wishes[order[place - 1]].key > wishes[rank].key:
            order[place] = order[place - 1]
            place -= 1
        order[place] = rank
        size += 1
    for place in range(size):
        ranks[place] = parent.ranks[order[place]]
    free(order)
    return size


cdef int split_type(MPI_Comm handle, int kind, int key, MPI_Info info,
                    MPI_Comm *made) noexcept nogil:
    """MPI_COMM_TYPE_SHARED: the ranks of one emulated node."""
    cdef Comm *parent = comm_of(handle)
    if parent == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if kind != TYPE_SHARED and kind != MPI_UNDEFINED:
        return error_raise(parent, MPI_ERR_ARG)
    return split(handle, MPI_UNDEFINED if kind == MPI_UNDEFINED else world.nodes[world.rank], key,
                 made)


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
    handle[0] = MPI_COMM_NULL
    return MPI_SUCCESS


# -- queries ---------------------------------------------------------------------------

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
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = group_make(comm.ranks, comm.size, made)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


cdef int test_inter(MPI_Comm handle, int *flag) noexcept nogil:
    flag[0] = 0
    return MPI_SUCCESS if comm_of(handle) != NULL else error_raise(NULL, MPI_ERR_COMM)


cdef int compare(MPI_Comm handle, MPI_Comm other_handle, int *result) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Comm *other = comm_of(other_handle)
    cdef int rank, place
    cdef bint found
    if comm == NULL or other == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    result[0] = MPI_UNEQUAL
    if comm == other:
        result[0] = MPI_IDENT
    elif comm.size == other.size:
        result[0] = MPI_CONGRUENT
        for rank in range(comm.size):
            if comm.ranks[rank] != other.ranks[rank]:
                result[0] = MPI_SIMILAR
        for rank in range(comm.size):
            found = False
            for place in range(other.size):
                found = found or comm.ranks[rank] == other.ranks[place]
            if not found:
                result[0] = MPI_UNEQUAL
    return MPI_SUCCESS


cdef int get_parent(MPI_Comm *parent) noexcept nogil:
    parent[0] = MPI_COMM_NULL
    return MPI_SUCCESS


cdef int get_name(MPI_Comm handle, char *name, int *length) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    length[0] = <int>strlen(comm.name)
    memcpy(name, comm.name, length[0] + 1)
    return MPI_SUCCESS


cdef int set_name(MPI_Comm handle, const char *name) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    # A longer one is cut (MPI 3.1, 6.8).
    strncpy(comm.name, name, MPI_MAX_OBJECT_NAME - 1)
    return MPI_SUCCESS


cdef void comm_fill(mpi_table *table) noexcept nogil:
    table.Comm_size = comm_size
    table.Comm_rank = comm_rank
    table.Comm_group = comm_group
    table.Comm_test_inter = test_inter
    table.Comm_compare = compare
    table.Comm_get_parent = get_parent
    table.Comm_get_name = get_name
    table.Comm_set_name = set_name
    table.Comm_dup = dup
    table.Comm_dup_with_info = dup_with_info
    table.Comm_create = create
    table.Comm_split = split
    table.Comm_split_type = split_type
    table.Comm_free = free_comm
    table.Comm_disconnect = free_comm
