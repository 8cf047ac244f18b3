"""Records of communicators, and their contexts (MPI 3.1, chapter 6).

The ranks of a new communicator agree on its contexts without a search: one rank of its parent takes
numbers from a counter in the run's memory that all ranks share, and tells the others the first of
them. No context is used twice.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strncpy

from shrimpmx.mpi.abi cimport (
    MPI_COMM_NULL, MPI_COMM_SELF, MPI_COMM_WORLD, MPI_Comm, MPI_ERR_COMM, MPI_ERR_NO_MEM,
    MPI_ERRORS_ARE_FATAL, MPI_MAX_OBJECT_NAME, MPI_SUCCESS,
)
from shrimpmx.mpi.attribute cimport attributes_delete
from shrimpmx.mpi.collective cimport begin, run
from shrimpmx.mpi.error cimport error_raise, handler_drop, handler_keep
from shrimpmx.mpi.intercomm cimport build_agreement
from shrimpmx.mpi.matching cimport CONTEXT_MAX
from shrimpmx.mpi.schedule cimport Schedule
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.topology cimport topology_drop
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.types cimport MxPartner
from shrimpmx.native.atomics cimport fetch_add_u32

cdef enum:
    COMMS = 65536
    HANDLE = <int>0x84000000
    NUMBER = 0x03FFFFFF
    # The first contexts of world, of self, and of all others.
    WORLD_FIRST = 0
    SELF_FIRST = CONTEXTS
    OTHERS_FIRST = 2 * CONTEXTS

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
    if (not prepare(comm_world(), MPI_COMM_WORLD, WORLD_FIRST, ranks, world.size, NULL, world.size)
            or not prepare(comm_self(), MPI_COMM_SELF, SELF_FIRST, &world.rank, 1, NULL, 1)):
        raise MemoryError
    free(ranks)
    strncpy(comm_world().name, "MPI_COMM_WORLD", MPI_MAX_OBJECT_NAME)
    strncpy(comm_self().name, "MPI_COMM_SELF", MPI_MAX_OBJECT_NAME)
    return 0


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
    memcpy(comm.ranks, ranks, size * sizeof(int))
    comm.size = size
    for rank in range(size):
        if ranks[rank] == world.rank:
            comm.rank = rank
    if remote != NULL:
        comm.remote = comm.ranks + size
        memcpy(comm.remote, remote, peers * sizeof(int))
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
    if (handle & ~NUMBER) != HANDLE or number >= COMMS or comms[number] == NULL:
        return NULL
    return comms[number] if comms[number].handle == handle and not comms[number].freed else NULL


cdef Comm *comm_of_context(uint32_t context) noexcept nogil:
    cdef int number = 0
    if context < SELF_FIRST:
        return comm_world()
    if context < OTHERS_FIRST:
        return comm_self()
    while number < COMMS and comms[number] != NULL:
        if comms[number].handle != 0 and context - comms[number].context < CONTEXTS:
            return comms[number]
        number += 1
    return NULL


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
    return comm_make_inter(parent, context, ranks, size, NULL, size)


cdef Comm *comm_make_inter(Comm *parent, uint32_t context, const int *ranks, int size,
                           const int *remote, int peers) noexcept nogil:
    cdef Comm *comm = NULL
    cdef int number = 0
    if context == 0:
        return NULL
    call_enter(<EndpointCore>world.core)
    while number < COMMS and comms[number] != NULL and comms[number].handle != 0:
        number += 1
    if number < COMMS and comms[number] == NULL:
        comms[number] = <Comm *>calloc(1, sizeof(Comm))
    if number < COMMS and comms[number] != NULL:
        if prepare(comms[number], HANDLE | number, context, ranks, size, remote, peers):
            comm = comms[number]
            comm.error_handler = parent.error_handler
            handler_keep(comm.error_handler)
    call_leave(<EndpointCore>world.core)
    return comm


cdef uint32_t take_contexts() noexcept nogil:
    cdef uint32_t first = OTHERS_FIRST + CONTEXTS * fetch_add_u32(world.contexts, 1)
    return first if first + CONTEXTS <= CONTEXT_MAX else 0


cdef uint32_t agree_on_contexts(Comm *parent) noexcept nogil:
    cdef Schedule *schedule
    cdef uint32_t first = 0
    if parent.rank == 0 and comm_leads(parent):
        first = take_contexts()
    schedule = begin(parent)
    if schedule != NULL:
        build_agreement(schedule, &first, sizeof(first))
    run(parent, schedule, NULL)
    return first


cdef int comm_made(Comm *parent, Comm *comm, MPI_Comm *made) noexcept nogil:
    made[0] = MPI_COMM_NULL
    if comm == NULL:
        return error_raise(parent, MPI_ERR_NO_MEM)
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
    handle[0] = MPI_COMM_NULL
    return MPI_SUCCESS


cdef void comm_fill(mpi_table *table) noexcept nogil:
    table.Comm_free = free_comm
    table.Comm_disconnect = free_comm
