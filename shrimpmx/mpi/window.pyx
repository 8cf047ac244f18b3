"""Windows: creation, what belongs to them, and their end (MPI 3.1, 11.2).

A window has a communicator of its own, whose contexts its messages have. Each rank tells the others
where in the heap of its node its memory and its lock are, if they are there.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strcmp, strlen, strncpy

from shrimpmx.mpi.abi cimport (
    MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, MPI_ERR_COMM, MPI_ERR_DISP, MPI_ERR_INFO,
    MPI_ERR_NO_MEM, MPI_ERR_RANK, MPI_ERR_RMA_ATTACH, MPI_ERR_RMA_FLAVOR, MPI_ERR_RMA_SHARED,
    MPI_ERR_RMA_SYNC, MPI_ERR_SIZE, MPI_ERR_WIN, MPI_INFO_NULL, MPI_MAX_OBJECT_NAME, MPI_PROC_NULL,
    MPI_SUCCESS, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_DYNAMIC,
    MPI_WIN_FLAVOR_SHARED, MPI_WIN_NULL, MPI_Aint, MPI_Comm, MPI_Group, MPI_Info, MPI_Win,
)
from shrimpmx.mpi.attribute cimport attributes_delete
from shrimpmx.mpi.collective_calls cimport allgather_bytes, barrier_on
from shrimpmx.mpi.communicator cimport (
    Comm, agree_on_contexts, comm_drop, comm_intra_of, comm_make,
)
from shrimpmx.mpi.error cimport (
    DETAIL_COMMS, error_detailed, error_of_window, error_raise, handler_drop,
)
from shrimpmx.mpi.group cimport group_make
from shrimpmx.mpi.info cimport info_is, info_make, info_text
from shrimpmx.mpi.memory cimport memory_give, memory_take
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.window_epoch cimport is_within, settle_sends
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore

cdef enum:
    NOWHERE = -1             # memory that no other rank reaches
    NO_MEMORY = -2

cdef struct Facts:           # of a rank, for the others; places from the beginning of a node's heap
    int64_t size
    int64_t unit
    int64_t memory
    int64_t control


# -- memory ------------------------------------------------------------------------------------

cdef bint shares_memory(const Comm *comm, int rank) noexcept nogil:
    """Whether that rank is on this node, and messages to it go by shared memory, too."""
    return (world.nodes[comm.ranks[rank]] == world.nodes[world.rank]
            and (<EndpointCore>world.core).library.heap is not None
            and (<EndpointCore>world.core).library.driver.shared)


cdef int64_t place_in_heap(const void *memory, int64_t bytes) noexcept nogil:
    if ((<EndpointCore>world.core).library.heap is None
            or not (<EndpointCore>world.core).library.heap.contains(memory, max(1, bytes))):
        return NOWHERE
    return <const uint8_t *>memory - at_place(0)


cdef uint8_t *at_place(int64_t place) noexcept nogil:
    return (<EndpointCore>world.core).library.heap.node.heap + place


cdef bint wants_apart(MPI_Info info) noexcept nogil:
    """Whether memory of ranks need not lie side by side."""
    cdef const char *text = info_text(info, "alloc_shared_noncontig")
    return text != NULL and strcmp(text, "true") == 0


# -- creation ----------------------------------------------------------------------------------

cdef Window *window_new(Comm *parent, int flavor, int64_t size, int64_t unit) noexcept nogil:
    """On a communicator of its own, which has a share of its contexts; NULL: no memory."""
    cdef Comm *comm = comm_make(parent, agree_on_contexts(parent), parent.ranks, parent.size)
    cdef Window *window
    if comm == NULL:
        return NULL
    window = <Window *>calloc(1, sizeof(Window))
    if window != NULL:
        window.targets = <Target *>calloc(comm.size, sizeof(Target))
        window.comm = comm
    if window == NULL or window.targets == NULL:
        free(window)
        call_enter(<EndpointCore>world.core)
        comm_drop(comm)
        call_leave(<EndpointCore>world.core)
        return NULL
    window.flavor = flavor
    window.size = size
    window.unit = unit
    window.error_handler = MPI_ERRORS_ARE_FATAL
    window.control = <Control *>memory_take(sizeof(Control))
    if window.control != NULL:
        memset(window.control, 0, sizeof(Control))
    call_enter(<EndpointCore>world.core)
    handler_drop(comm.error_handler)
    comm.error_handler = MPI_ERRORS_RETURN  # those of requests, which raise none of their own
    comm.window = window
    call_leave(<EndpointCore>world.core)
    snprintf(comm.name, MPI_MAX_OBJECT_NAME, "window 0x%x", window_handle(window))
    return window


cdef void window_delete(Window *window) noexcept nogil:
    """It is none of the world's any more."""
    cdef Region *region
    if window.allocated != NULL:
        memory_give(window.allocated)
    if window.control != NULL:
        memory_give(window.control)
    while window.regions != NULL:
        region = window.regions
        window.regions = region.next
        free(region)
    call_enter(<EndpointCore>world.core)
    handler_drop(window.error_handler)
    window.comm.window = NULL
    window.comm.freed = True
    comm_drop(window.comm)
    call_leave(<EndpointCore>world.core)
    free(window.targets)
    free(window)


cdef int allocate_shared(Window *window, bint apart, int64_t *place) noexcept nogil:
    """The first rank takes the memory of all, unless each takes its own: where this rank's is."""
    cdef Comm *comm = window.comm
    cdef int64_t *sizes = <int64_t *>malloc(comm.size * sizeof(int64_t))
    cdef int64_t first = NO_MEMORY, before = 0, total = 0
    cdef int64_t[2] told
    cdef int64_t *all_told = <int64_t *>malloc(2 * comm.size * sizeof(int64_t))
    cdef int rank, code = MPI_ERR_NO_MEM
    if sizes != NULL and all_told != NULL:
        code = allgather_bytes(comm, &window.size, sizes, sizeof(int64_t))
    if code == MPI_SUCCESS:
        for rank in range(comm.size):
            total += sizes[rank]
            before += sizes[rank] if rank < comm.rank else 0
        if apart or comm.rank == 0:
            window.allocated = memory_take(window.size if apart else total)
        if window.allocated != NULL:
            first = place_in_heap(window.allocated, 1)
            if comm.size == 1:
                window.base = window.allocated
            elif first == NOWHERE:
                first = NO_MEMORY
        told[0] = first
        code = allgather_bytes(comm, told, all_told, sizeof(int64_t))
        place[0] = all_told[comm.rank if apart else 0]
        if not apart and place[0] >= 0:
            place[0] += before
    free(sizes)
    free(all_told)
    return code


cdef int tell(Window *window, int64_t memory) noexcept nogil:
    """Every rank learns where the others' windows are; an error of one is one of all."""
    cdef Comm *comm = window.comm
    cdef Facts own = Facts(window.size, window.unit, memory, NO_MEMORY)
    cdef Facts *facts = <Facts *>malloc(comm.size * sizeof(Facts))
    cdef Target *target
    cdef int rank, code = MPI_ERR_NO_MEM
    if window.control != NULL:
        own.control = place_in_heap(window.control, sizeof(Control))
    if facts != NULL:
        code = allgather_bytes(comm, &own, facts, sizeof(Facts))
    for rank in range(comm.size if code == MPI_SUCCESS else 0):
        if facts[rank].memory == NO_MEMORY or facts[rank].control == NO_MEMORY:
            code = MPI_ERR_NO_MEM
            break
        target = &window.targets[rank]
        target.size = facts[rank].size
        target.unit = facts[rank].unit
        if shares_memory(comm, rank) and facts[rank].control >= 0:
            target.control = <Control *>at_place(facts[rank].control)
            if facts[rank].memory >= 0:
                target.memory = at_place(facts[rank].memory)
    free(facts)
    if code == MPI_SUCCESS:
        window.targets[comm.rank].memory = <uint8_t *>window.base
        window.targets[comm.rank].control = window.control
    return code


cdef int check(Comm *comm, int flavor, int64_t size, int64_t unit) noexcept nogil:
    cdef int rank
    if comm == NULL:
        return MPI_ERR_COMM
    if size < 0:
        return MPI_ERR_SIZE
    if unit <= 0:
        return MPI_ERR_DISP
    for rank in range(comm.size):
        if flavor == MPI_WIN_FLAVOR_SHARED and (
                world.nodes[comm.ranks[rank]] != world.nodes[world.rank]):
            return MPI_ERR_RMA_SHARED
    return MPI_SUCCESS


cdef int find_memory(Window *window, void *base, MPI_Info info, int64_t *place) noexcept nogil:
    if window.flavor == MPI_WIN_FLAVOR_SHARED:
        return allocate_shared(window, wants_apart(info), place)
    if window.flavor == MPI_WIN_FLAVOR_ALLOCATE:
        base = window.allocated = memory_take(window.size)
    window.base = base
    place[0] = place_in_heap(base, window.size)
    if base == NULL and window.flavor == MPI_WIN_FLAVOR_ALLOCATE:
        place[0] = NO_MEMORY
    return MPI_SUCCESS


cdef int create_as(int flavor, void *base, int64_t size, int64_t unit, MPI_Info info,
                   MPI_Comm handle, void *baseptr, MPI_Win *made) noexcept nogil:
    cdef Comm *parent = comm_intra_of(handle)
    cdef int code = check(parent, flavor, size, unit)
    cdef Window *window
    cdef int64_t place = NOWHERE
    made[0] = MPI_WIN_NULL
    if code == MPI_SUCCESS and not info_is(info):
        code = MPI_ERR_INFO
    if code != MPI_SUCCESS:
        return error_raise(parent, code)
    window = window_new(parent, flavor, size, unit)
    if window == NULL:
        return error_raise(parent, error_detailed(MPI_ERR_NO_MEM, DETAIL_COMMS))
    code = find_memory(window, base, info, &place)
    if code == MPI_SUCCESS and flavor == MPI_WIN_FLAVOR_SHARED and place >= 0:
        window.base = at_place(place)
    if code == MPI_SUCCESS:
        code = tell(window, place)
    if code != MPI_SUCCESS:
        window_delete(window)
        return error_raise(parent, code)
    if baseptr != NULL:
        (<void **>baseptr)[0] = window.base
    call_enter(<EndpointCore>world.core)
    window.next = <Window *>world.windows
    world.windows = window
    call_leave(<EndpointCore>world.core)
    made[0] = window_handle(window)
    return MPI_SUCCESS


cdef int create(void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                MPI_Win *made) noexcept nogil:
    return create_as(MPI_WIN_FLAVOR_CREATE, base, size, unit, info, comm, NULL, made)


cdef int allocate(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *baseptr,
                  MPI_Win *made) noexcept nogil:
    return create_as(MPI_WIN_FLAVOR_ALLOCATE, NULL, size, unit, info, comm, baseptr, made)


cdef int allocate_in_common(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                            void *baseptr, MPI_Win *made) noexcept nogil:
    return create_as(MPI_WIN_FLAVOR_SHARED, NULL, size, unit, info, comm, baseptr, made)


cdef int create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *made) noexcept nogil:
    return create_as(MPI_WIN_FLAVOR_DYNAMIC, NULL, 0, 1, info, comm, NULL, made)


cdef int free_window(MPI_Win *handle) noexcept nogil:
    """When no rank has anything to do with it any more."""
    cdef Window *window = window_of(handle[0])
    cdef Window **place = <Window **>&world.windows
    cdef int code
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    if is_within(window):
        return error_of_window(window, MPI_ERR_RMA_SYNC)
    code = attributes_delete(&window.attributes, handle[0])
    if code == MPI_SUCCESS:
        code = barrier_on(window.comm)
    if code == MPI_SUCCESS:
        call_enter(<EndpointCore>world.core)
        code = settle_sends(window)
        if code == MPI_SUCCESS:
            while place[0] != window:
                place = &place[0].next
            place[0] = window.next
        call_leave(<EndpointCore>world.core)
    if code != MPI_SUCCESS:
        return error_of_window(window, code)
    window_delete(window)
    handle[0] = MPI_WIN_NULL
    return MPI_SUCCESS


# -- what belongs to it ------------------------------------------------------------------------

cdef int shared_query(MPI_Win handle, int rank, MPI_Aint *size, MPI_Aint *unit,
                      void *baseptr) noexcept nogil:
    """Of MPI_PROC_NULL: the first rank that has any memory. A window that was not made as a shared
    one has no bytes of a rank whose memory is out of this rank's reach (MPI 4.1, 12.2.3)."""
    cdef Window *window = window_of(handle)
    cdef const Target *target
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    if window.flavor == MPI_WIN_FLAVOR_DYNAMIC:
        return error_of_window(window, MPI_ERR_RMA_FLAVOR)
    if rank != MPI_PROC_NULL and <unsigned int>rank >= <unsigned int>window.comm.size:
        return error_of_window(window, MPI_ERR_RANK)
    if rank == MPI_PROC_NULL:
        rank = 0
        while rank + 1 < window.comm.size and window.targets[rank].size == 0:
            rank += 1
    target = &window.targets[rank]
    size[0] = target.size if target.memory != NULL else 0
    unit[0] = target.unit
    (<void **>baseptr)[0] = target.memory
    return MPI_SUCCESS


cdef int attach(MPI_Win handle, void *base, MPI_Aint size) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef Region *region
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    if window.flavor != MPI_WIN_FLAVOR_DYNAMIC:
        return error_of_window(window, MPI_ERR_RMA_FLAVOR)
    if size < 0:
        return error_of_window(window, MPI_ERR_SIZE)
    region = <Region *>malloc(sizeof(Region))
    if region == NULL:
        return error_of_window(window, MPI_ERR_NO_MEM)
    region[0] = Region(<uint8_t *>base, size, NULL)
    call_enter(<EndpointCore>world.core)
    region.next = window.regions
    window.regions = region
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


cdef int detach(MPI_Win handle, const void *base) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef Region **place
    cdef Region *region
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    if window.flavor != MPI_WIN_FLAVOR_DYNAMIC:
        return error_of_window(window, MPI_ERR_RMA_FLAVOR)
    call_enter(<EndpointCore>world.core)
    place = &window.regions
    while place[0] != NULL and place[0].start != base:
        place = &place[0].next
    region = place[0]
    if region != NULL:
        place[0] = region.next
    call_leave(<EndpointCore>world.core)
    free(region)
    return MPI_SUCCESS if region != NULL else error_of_window(window, MPI_ERR_RMA_ATTACH)


cdef int set_info(MPI_Win handle, MPI_Info info) noexcept nogil:
    cdef Window *window = window_of(handle)
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    if info == MPI_INFO_NULL or not info_is(info):
        return error_of_window(window, MPI_ERR_INFO)
    return MPI_SUCCESS


cdef int get_info(MPI_Win handle, MPI_Info *made) noexcept nogil:
    return info_make(made) if window_of(handle) != NULL else error_of_window(NULL, MPI_ERR_WIN)


cdef int get_group(MPI_Win handle, MPI_Group *made) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef int code
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    code = group_make(window.comm.ranks, window.comm.size, window.comm.session, made)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_window(window, code)


cdef int get_name(MPI_Win handle, char *name, int *length) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef const char *text = b"MPI_WIN_NULL"
    if window == NULL and handle != MPI_WIN_NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    if window != NULL:
        text = window.name
    length[0] = <int>strlen(text)
    memcpy(name, text, length[0] + 1)
    return MPI_SUCCESS


cdef int set_name(MPI_Win handle, const char *name) noexcept nogil:
    cdef Window *window = window_of(handle)
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    strncpy(window.name, name, MPI_MAX_OBJECT_NAME - 1)
    return MPI_SUCCESS


cdef void window_fill(mpi_table *table) noexcept nogil:
    table.Win_create = create
    table.Win_allocate = allocate
    table.Win_allocate_shared = allocate_in_common
    table.Win_create_dynamic = create_dynamic
    table.Win_free = free_window
    table.Win_shared_query = shared_query
    table.Win_attach = attach
    table.Win_detach = detach
    table.Win_set_info = set_info
    table.Win_get_info = get_info
    table.Win_get_group = get_group
    table.Win_get_name = get_name
    table.Win_set_name = set_name
