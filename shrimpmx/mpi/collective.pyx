"""The calls of collectives: each checks its arguments, builds a schedule and starts it.

A blocking call waits for it; a non-blocking one makes a request of it (MPI 3.1, 5.12).
"""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_Datatype, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_NO_MEM,
    MPI_ERR_ROOT, MPI_ERR_TYPE, MPI_Op, MPI_Request, MPI_REQUEST_NULL, MPI_SUCCESS, in_place,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of, comm_world
from shrimpmx.mpi.datatype cimport TYPE_INVALID, datatype_bytes
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.exchange cimport (
    Parts, build_allgather, build_alltoall, build_barrier, build_broadcast, build_gather,
    build_scatter, part_at, part_bytes,
)
from shrimpmx.mpi.operation cimport operation_check
from shrimpmx.mpi.reduction cimport (
    build_allreduce, build_reduce, build_scan, room_of_reduction,
)
from shrimpmx.mpi.request cimport KIND_COLLECTIVE, Request, request_new
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_end, schedule_new, schedule_over, schedule_round,
    schedule_start, schedules_advance,
)
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library


cdef bint found_over(Library library, void *context) noexcept nogil:
    schedules_advance()
    return schedule_over(<Schedule *>context)


cdef Schedule *begin(Comm *comm, int64_t room_bytes) noexcept nogil:
    """A schedule to fill, under the lock, which run() gives back; NULL: no memory, and no lock."""
    cdef Schedule *schedule
    call_enter(<EndpointCore>world.core)
    schedule = schedule_new(comm, room_bytes)
    if schedule == NULL:
        call_leave(<EndpointCore>world.core)
    return schedule


cdef int run(Comm *comm, Schedule *schedule, MPI_Request *handle) noexcept nogil:
    """Starts a schedule; waits for it if `handle` is NULL. The class of an error."""
    cdef Request *request
    cdef int code = MPI_SUCCESS
    if schedule == NULL:
        return MPI_ERR_NO_MEM
    schedule_start(schedule)
    if handle == NULL:
        if not schedule_over(schedule):
            world_wait(found_over, schedule)
        code = schedule_end(schedule)
    else:
        request = request_new(KIND_COLLECTIVE, comm)
        if request == NULL:
            code = MPI_ERR_NO_MEM
        else:
            request.schedule = schedule
        handle[0] = MPI_REQUEST_NULL if request == NULL else request.handle
    call_leave(<EndpointCore>world.core)
    return code


cdef inline int ended(Comm *comm, int code) noexcept nogil:
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


# -- arguments ---------------------------------------------------------------------------

cdef int check_parts(Parts *parts, const void *data, int count, MPI_Datatype datatype,
                     const int *counts, const int *places, int size) noexcept nogil:
    """One part per rank: `count` elements each, or `counts` of them at `places`."""
    cdef int rank
    parts.data = <void *>data
    parts.unit = datatype_bytes(datatype)
    parts.count = count
    parts.counts = counts
    parts.places = places
    if parts.unit == TYPE_INVALID:
        return MPI_ERR_TYPE
    if counts == NULL:
        return MPI_ERR_COUNT if count < 0 else MPI_SUCCESS
    for rank in range(size):
        if counts[rank] < 0:
            return MPI_ERR_COUNT
    return MPI_SUCCESS


cdef int check_one(int64_t *length, int count, MPI_Datatype datatype) noexcept nogil:
    cdef int unit = datatype_bytes(datatype)
    length[0] = <int64_t>count * unit
    if unit == TYPE_INVALID:
        return MPI_ERR_TYPE
    return MPI_ERR_COUNT if count < 0 else MPI_SUCCESS


cdef inline const void *own_of(const void *data) noexcept nogil:
    """NULL if it is in place."""
    if in_place(data):
        return NULL
    return data


cdef inline int check_root(const Comm *comm, int root) noexcept nogil:
    return MPI_SUCCESS if 0 <= root < comm.size else MPI_ERR_ROOT


# -- for other calls -----------------------------------------------------------------------

cdef int barrier_of_world() noexcept nogil:
    return barrier_as(comm_world, NULL)


cdef int broadcast_bytes(Comm *comm, void *data, int64_t length, int root) noexcept nogil:
    cdef Schedule *schedule = begin(comm, 0)
    if schedule != NULL:
        build_broadcast(schedule, data, length, root)
    return run(comm, schedule, NULL)


cdef int allgather_bytes(Comm *comm, const void *own, void *into, int64_t length) noexcept nogil:
    cdef Schedule *schedule = begin(comm, 0)
    cdef Parts parts = Parts(into, length, 1, NULL, NULL)
    if schedule != NULL:
        build_allgather(schedule, own, &parts)
    return run(comm, schedule, NULL)


cdef int barrier_as(Comm *comm, MPI_Request *request) noexcept nogil:
    cdef Schedule *schedule = begin(comm, 0)
    if schedule != NULL:
        build_barrier(schedule)
    return run(comm, schedule, request)


# -- data that moves -------------------------------------------------------------------------

cdef int bcast_as(void *data, int count, MPI_Datatype datatype, int root, MPI_Comm handle,
                  MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef int64_t length
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = max(check_one(&length, count, datatype), check_root(comm, root))
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    schedule = begin(comm, 0)
    if schedule != NULL:
        build_broadcast(schedule, data, length, root)
    return ended(comm, run(comm, schedule, request))


cdef int gather_as(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                   const int *counts, const int *places, MPI_Datatype into_datatype, int root,
                   MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef Parts parts
    cdef int64_t length = 0
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = check_root(comm, root)
    if code == MPI_SUCCESS and comm.rank == root:
        code = check_parts(&parts, into, into_count, into_datatype, counts, places, comm.size)
    if code == MPI_SUCCESS and not in_place(data):
        code = check_one(&length, count, datatype)
    if code != MPI_SUCCESS or (in_place(data) and comm.rank != root):
        return error_raise(comm, code if code != MPI_SUCCESS else MPI_ERR_BUFFER)
    schedule = begin(comm, 0)
    if schedule != NULL:
        build_gather(schedule, own_of(data), length, &parts, root)
    return ended(comm, run(comm, schedule, request))


cdef int scatter_as(const void *data, int count, const int *counts, const int *places,
                    MPI_Datatype datatype, void *into, int into_count, MPI_Datatype into_datatype,
                    int root, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef Parts parts
    cdef int64_t length = 0
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = check_root(comm, root)
    if code == MPI_SUCCESS and comm.rank == root:
        code = check_parts(&parts, data, count, datatype, counts, places, comm.size)
    if code == MPI_SUCCESS and not in_place(into):
        code = check_one(&length, into_count, into_datatype)
    if code != MPI_SUCCESS or (in_place(into) and comm.rank != root):
        return error_raise(comm, code if code != MPI_SUCCESS else MPI_ERR_BUFFER)
    schedule = begin(comm, 0)
    if schedule != NULL:
        build_scatter(schedule, &parts, NULL if in_place(into) else into, length, root)
    return ended(comm, run(comm, schedule, request))


cdef int allgather_as(const void *data, int count, MPI_Datatype datatype, void *into,
                      int into_count, const int *counts, const int *places,
                      MPI_Datatype into_datatype, MPI_Comm handle,
                      MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef Parts parts
    cdef int64_t length
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = check_parts(&parts, into, into_count, into_datatype, counts, places, comm.size)
    if code == MPI_SUCCESS and not in_place(data):
        code = check_one(&length, count, datatype)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    schedule = begin(comm, 0)
    if schedule != NULL:
        build_allgather(schedule, own_of(data), &parts)
    return ended(comm, run(comm, schedule, request))


cdef int alltoall_as(const void *data, int count, const int *counts, const int *places,
                     MPI_Datatype datatype, void *into, int into_count, const int *into_counts,
                     const int *into_places, MPI_Datatype into_datatype, MPI_Comm handle,
                     MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef Parts sent, received
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = check_parts(&received, into, into_count, into_datatype, into_counts, into_places,
                       comm.size)
    sent = received
    if code == MPI_SUCCESS and not in_place(data):
        code = check_parts(&sent, data, count, datatype, counts, places, comm.size)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    schedule = begin(comm, span(&received, comm.size) if in_place(data) else 0)
    if schedule != NULL:
        if in_place(data):
            keep(schedule, &sent, &received, span(&received, comm.size))
        build_alltoall(schedule, &sent, &received)
    return ended(comm, run(comm, schedule, request))


cdef int64_t span(const Parts *parts, int size) noexcept nogil:
    """Bytes from the first part's beginning to the end of the last."""
    cdef int64_t end = 0
    cdef int rank
    for rank in range(size):
        end = max(end, <char *>part_at(parts, rank) - <char *>parts.data
                  + part_bytes(parts, rank))
    return end


cdef void keep(Schedule *schedule, Parts *sent, const Parts *received,
               int64_t length) noexcept nogil:
    """What is sent in place, before it is overwritten."""
    sent.data = schedule.room
    schedule_copy(schedule, received.data, schedule.room, length)


# -- reductions ---------------------------------------------------------------------------------

cdef Schedule *begin_reduction(Comm *comm, const void **data, void *into, int64_t count,
                               MPI_Datatype datatype, MPI_Op operation,
                               int *code) noexcept nogil:
    """A schedule for it, under the lock; or NULL, with an error in `code`, and no lock."""
    cdef Schedule *schedule
    code[0] = operation_check(operation, datatype)
    if count < 0:
        code[0] = MPI_ERR_COUNT
    if code[0] != MPI_SUCCESS:
        return NULL
    if in_place(data[0]):
        data[0] = into
    schedule = begin(comm, room_of_reduction(comm.size, count * datatype_bytes(datatype)))
    if schedule == NULL:
        code[0] = MPI_ERR_NO_MEM
    else:
        schedule.operation = operation
        schedule.datatype = datatype
    return schedule


cdef int reduce_as(const void *data, void *into, int count, MPI_Datatype datatype,
                   MPI_Op operation, int root, MPI_Comm handle,
                   MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if check_root(comm, root) != MPI_SUCCESS:
        return error_raise(comm, MPI_ERR_ROOT)
    if in_place(data) and comm.rank != root:
        return error_raise(comm, MPI_ERR_BUFFER)
    schedule = begin_reduction(comm, &data, into, count, datatype, operation, &code)
    if schedule == NULL:
        return error_raise(comm, code)
    build_reduce(schedule, data, into, count, datatype_bytes(datatype), root)
    return ended(comm, run(comm, schedule, request))


cdef int allreduce_as(const void *data, void *into, int count, MPI_Datatype datatype,
                      MPI_Op operation, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    schedule = begin_reduction(comm, &data, into, count, datatype, operation, &code)
    if schedule == NULL:
        return error_raise(comm, code)
    build_allreduce(schedule, data, into, count, datatype_bytes(datatype))
    return ended(comm, run(comm, schedule, request))


cdef int scan_as(const void *data, void *into, int count, MPI_Datatype datatype,
                 MPI_Op operation, MPI_Comm handle, MPI_Request *request,
                 bint exclusive) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    schedule = begin_reduction(comm, &data, into, count, datatype, operation, &code)
    if schedule == NULL:
        return error_raise(comm, code)
    build_scan(schedule, data, into, count, datatype_bytes(datatype), exclusive)
    return ended(comm, run(comm, schedule, request))


cdef int reduce_scatter_as(const void *data, void *into, int count, const int *counts,
                           MPI_Datatype datatype, MPI_Op operation, MPI_Comm handle,
                           MPI_Request *request) noexcept nogil:
    """To rank 0, and from there to all: its own part, `count` or `counts[rank]` elements."""
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef Parts parts
    cdef int64_t total = 0
    cdef void *sum
    cdef int rank, code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = check_parts(&parts, NULL, count, datatype, counts, NULL, comm.size)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    for rank in range(comm.size):
        total += count if counts == NULL else counts[rank]
    schedule = begin_reduction(comm, &data, into, total, datatype, operation, &code)
    if schedule == NULL:
        return error_raise(comm, code)
    # The result lies where the last of the room is, which the reduction no longer needs then.
    sum = schedule.room + comm.size * total * parts.unit
    build_reduce(schedule, data, sum, total, parts.unit, 0)
    schedule_round(schedule)
    parts.data = sum
    build_scatter(schedule, &parts, into, part_bytes(&parts, comm.rank), 0)
    return ended(comm, run(comm, schedule, request))


# -- the table ---------------------------------------------------------------------------------

cdef int barrier(MPI_Comm handle) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    return ended(comm, barrier_as(comm, NULL))


cdef int ibarrier(MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    return ended(comm, barrier_as(comm, request))


cdef int bcast(void *data, int count, MPI_Datatype datatype, int root,
               MPI_Comm handle) noexcept nogil:
    return bcast_as(data, count, datatype, root, handle, NULL)


cdef int ibcast(void *data, int count, MPI_Datatype datatype, int root, MPI_Comm handle,
                MPI_Request *request) noexcept nogil:
    return bcast_as(data, count, datatype, root, handle, request)


cdef int gather(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                MPI_Datatype into_datatype, int root, MPI_Comm handle) noexcept nogil:
    return gather_as(data, count, datatype, into, into_count, NULL, NULL, into_datatype, root,
                     handle, NULL)


cdef int igather(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                 MPI_Datatype into_datatype, int root, MPI_Comm handle,
                 MPI_Request *request) noexcept nogil:
    return gather_as(data, count, datatype, into, into_count, NULL, NULL, into_datatype, root,
                     handle, request)


cdef int gatherv(const void *data, int count, MPI_Datatype datatype, void *into, const int *counts,
                 const int *places, MPI_Datatype into_datatype, int root,
                 MPI_Comm handle) noexcept nogil:
    return gather_as(data, count, datatype, into, 0, counts, places, into_datatype, root, handle,
                     NULL)


cdef int igatherv(const void *data, int count, MPI_Datatype datatype, void *into, const int *counts,
                  const int *places, MPI_Datatype into_datatype, int root, MPI_Comm handle,
                  MPI_Request *request) noexcept nogil:
    return gather_as(data, count, datatype, into, 0, counts, places, into_datatype, root, handle,
                     request)


cdef int scatter(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                 MPI_Datatype into_datatype, int root, MPI_Comm handle) noexcept nogil:
    return scatter_as(data, count, NULL, NULL, datatype, into, into_count, into_datatype, root,
                      handle, NULL)


cdef int iscatter(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                  MPI_Datatype into_datatype, int root, MPI_Comm handle,
                  MPI_Request *request) noexcept nogil:
    return scatter_as(data, count, NULL, NULL, datatype, into, into_count, into_datatype, root,
                      handle, request)


cdef int scatterv(const void *data, const int *counts, const int *places, MPI_Datatype datatype,
                  void *into, int into_count, MPI_Datatype into_datatype, int root,
                  MPI_Comm handle) noexcept nogil:
    return scatter_as(data, 0, counts, places, datatype, into, into_count, into_datatype, root,
                      handle, NULL)


cdef int iscatterv(const void *data, const int *counts, const int *places, MPI_Datatype datatype,
                   void *into, int into_count, MPI_Datatype into_datatype, int root,
                   MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return scatter_as(data, 0, counts, places, datatype, into, into_count, into_datatype, root,
                      handle, request)


cdef int allgather(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                   MPI_Datatype into_datatype, MPI_Comm handle) noexcept nogil:
    return allgather_as(data, count, datatype, into, into_count, NULL, NULL, into_datatype, handle,
                        NULL)


cdef int iallgather(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                    MPI_Datatype into_datatype, MPI_Comm handle,
                    MPI_Request *request) noexcept nogil:
    return allgather_as(data, count, datatype, into, into_count, NULL, NULL, into_datatype, handle,
                        request)


cdef int allgatherv(const void *data, int count, MPI_Datatype datatype, void *into,
                    const int *counts, const int *places, MPI_Datatype into_datatype,
                    MPI_Comm handle) noexcept nogil:
    return allgather_as(data, count, datatype, into, 0, counts, places, into_datatype, handle, NULL)


cdef int iallgatherv(const void *data, int count, MPI_Datatype datatype, void *into,
                     const int *counts, const int *places, MPI_Datatype into_datatype,
                     MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return allgather_as(data, count, datatype, into, 0, counts, places, into_datatype, handle,
                        request)


cdef int alltoall(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                  MPI_Datatype into_datatype, MPI_Comm handle) noexcept nogil:
    return alltoall_as(data, count, NULL, NULL, datatype, into, into_count, NULL, NULL,
                       into_datatype, handle, NULL)


cdef int ialltoall(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                   MPI_Datatype into_datatype, MPI_Comm handle,
                   MPI_Request *request) noexcept nogil:
    return alltoall_as(data, count, NULL, NULL, datatype, into, into_count, NULL, NULL,
                       into_datatype, handle, request)


cdef int alltoallv(const void *data, const int *counts, const int *places, MPI_Datatype datatype,
                   void *into, const int *into_counts, const int *into_places,
                   MPI_Datatype into_datatype, MPI_Comm handle) noexcept nogil:
    return alltoall_as(data, 0, counts, places, datatype, into, 0, into_counts, into_places,
                       into_datatype, handle, NULL)


cdef int ialltoallv(const void *data, const int *counts, const int *places, MPI_Datatype datatype,
                    void *into, const int *into_counts, const int *into_places,
                    MPI_Datatype into_datatype, MPI_Comm handle,
                    MPI_Request *request) noexcept nogil:
    return alltoall_as(data, 0, counts, places, datatype, into, 0, into_counts, into_places,
                       into_datatype, handle, request)


cdef int reduce(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
                int root, MPI_Comm handle) noexcept nogil:
    return reduce_as(data, into, count, datatype, operation, root, handle, NULL)


cdef int ireduce(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
                 int root, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return reduce_as(data, into, count, datatype, operation, root, handle, request)


cdef int allreduce(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
                   MPI_Comm handle) noexcept nogil:
    return allreduce_as(data, into, count, datatype, operation, handle, NULL)


cdef int iallreduce(const void *data, void *into, int count, MPI_Datatype datatype,
                    MPI_Op operation, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return allreduce_as(data, into, count, datatype, operation, handle, request)


cdef int scan(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
              MPI_Comm handle) noexcept nogil:
    return scan_as(data, into, count, datatype, operation, handle, NULL, False)


cdef int iscan(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
               MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return scan_as(data, into, count, datatype, operation, handle, request, False)


cdef int exscan(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
                MPI_Comm handle) noexcept nogil:
    return scan_as(data, into, count, datatype, operation, handle, NULL, True)


cdef int iexscan(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
                 MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return scan_as(data, into, count, datatype, operation, handle, request, True)


cdef int reduce_scatter(const void *data, void *into, const int *counts, MPI_Datatype datatype,
                        MPI_Op operation, MPI_Comm handle) noexcept nogil:
    return reduce_scatter_as(data, into, 0, counts, datatype, operation, handle, NULL)


cdef int ireduce_scatter(const void *data, void *into, const int *counts, MPI_Datatype datatype,
                         MPI_Op operation, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return reduce_scatter_as(data, into, 0, counts, datatype, operation, handle, request)


cdef int reduce_scatter_block(const void *data, void *into, int count, MPI_Datatype datatype,
                              MPI_Op operation, MPI_Comm handle) noexcept nogil:
    return reduce_scatter_as(data, into, count, NULL, datatype, operation, handle, NULL)


cdef int ireduce_scatter_block(const void *data, void *into, int count, MPI_Datatype datatype,
                               MPI_Op operation, MPI_Comm handle,
                               MPI_Request *request) noexcept nogil:
    return reduce_scatter_as(data, into, count, NULL, datatype, operation, handle, request)


cdef void collective_fill(mpi_table *table) noexcept nogil:
    table.Barrier = barrier
    table.Ibarrier = ibarrier
    table.Bcast = bcast
    table.Ibcast = ibcast
    table.Gather = gather
    table.Igather = igather
    table.Gatherv = gatherv
    table.Igatherv = igatherv
    table.Scatter = scatter
    table.Iscatter = iscatter
    table.Scatterv = scatterv
    table.Iscatterv = iscatterv
    table.Allgather = allgather
    table.Iallgather = iallgather
    table.Allgatherv = allgatherv
    table.Iallgatherv = iallgatherv
    table.Alltoall = alltoall
    table.Ialltoall = ialltoall
    table.Alltoallv = alltoallv
    table.Ialltoallv = ialltoallv
    table.Reduce = reduce
    table.Ireduce = ireduce
    table.Allreduce = allreduce
    table.Iallreduce = iallreduce
    table.Scan = scan
    table.Iscan = iscan
    table.Exscan = exscan
    table.Iexscan = iexscan
    table.Reduce_scatter = reduce_scatter
    table.Ireduce_scatter = ireduce_scatter
    table.Reduce_scatter_block = reduce_scatter_block
    table.Ireduce_scatter_block = ireduce_scatter_block
