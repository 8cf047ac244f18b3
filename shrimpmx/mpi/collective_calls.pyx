"""The calls of collectives: they check arguments and start schedules."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.abi cimport (
    MPI_COMBINER_NAMED, MPI_ERR_ARG, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_NO_MEM,
    MPI_ERR_ROOT, MPI_ERR_TOPOLOGY, MPI_ERR_UNSUPPORTED_OPERATION, MPI_PROC_NULL, MPI_REQUEST_NULL,
    MPI_ROOT, MPI_SUCCESS, Counts, MPI_Aint, MPI_Comm, MPI_Count, MPI_Datatype, MPI_Op, MPI_Request,
    count_of, in_place, no_counts, place_itself,
)
from shrimpmx.mpi.communicator cimport (
    COLLECTIVE_BLOCKING, COLLECTIVE_NON_BLOCKING, Comm, Topology, comm_intra_of, comm_of,
    comm_world,
)
from shrimpmx.mpi.data_algorithms cimport (
    build_allgather, build_alltoall, build_barrier, build_broadcast, build_gather, build_scatter,
)
from shrimpmx.mpi.datatype cimport (
    Datatype, bytes_fit, data_missing, datatype_for, datatype_remember,
)
from shrimpmx.mpi.error cimport CODE_INTERRUPTED, DETAIL_REQUESTS, error_detailed, error_raise
from shrimpmx.mpi.matching cimport TAG_MAX
from shrimpmx.mpi.operation cimport operation_check, operation_keep
from shrimpmx.mpi.reduction_algorithms cimport (
    build_allreduce, build_reduce, build_reduce_scatter, build_scan,
)
from shrimpmx.mpi.request cimport KIND_COLLECTIVE, Request, request_describe, request_new
from shrimpmx.mpi.schedule cimport (
    Elements, Parts, Schedule, elements_check, elements_of_one, elements_receive,
    elements_with_counts, elements_with_types, part_at, part_bytes, parts_copy, parts_to_receive,
    parts_to_send, schedule_awaits, schedule_end, schedule_leave, schedule_new, schedule_number,
    schedule_over, schedule_pack, schedule_receive, schedule_round, schedule_send, schedule_start,
    schedule_tagged, schedule_take, schedule_unpack,
)
from shrimpmx.mpi.section cimport Awaited, awaited_message
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.topology cimport MPI_CART
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library


# -- A collective call checks its arguments, builds a schedule and starts it.
#
# A blocking call waits for it; a non-blocking one makes a request of it (MPI 3.1, 5.12), and one
# that describes it a persistent request, which starts it again and again (MPI 4.1, 6.13).

cdef bint found_over(Library library, void *context) noexcept nogil:
    return schedule_over(<Schedule *>context)


cdef void awaited_by_collective(const void *context, Awaited *awaited) noexcept nogil:
    awaited_message(schedule_awaits(<const Schedule *>context), awaited)


cdef Schedule *begin(Comm *comm) noexcept nogil:
    """A schedule to fill, under the lock, which run() gives back; NULL: no memory, and no lock."""
    cdef Schedule *schedule
    call_enter(<EndpointCore>world.core)
    schedule = schedule_new(comm)
    if schedule == NULL:
        call_leave(<EndpointCore>world.core)
    return schedule


cdef extern from "mpi/persistent.h" nogil:
    int describing           # the calling thread describes a persistent collective
    void describe_fill(mpi_table *table)


cdef int run(Comm *comm, Schedule *schedule, MPI_Request *handle) noexcept nogil:
    cdef Request *request
    cdef int code = MPI_SUCCESS
    if schedule == NULL:
        return MPI_ERR_NO_MEM
    if handle == NULL:
        schedule_number(schedule, COLLECTIVE_BLOCKING)
        schedule_start(schedule)
        if not schedule_over(schedule):
            if not world_wait(found_over, awaited_by_collective, schedule):
                schedule_leave(schedule)
                call_leave(<EndpointCore>world.core)
                return CODE_INTERRUPTED
        code = schedule_end(schedule)
    elif describing and schedule.code != MPI_SUCCESS:  # it could not be built
        handle[0] = MPI_REQUEST_NULL
        code = schedule_end(schedule)
    else:
        request = request_new(KIND_COLLECTIVE, comm)
        handle[0] = MPI_REQUEST_NULL if request == NULL else request.handle
        if request == NULL:
            schedule_end(schedule)
            code = error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS)
        elif describing:
            request_describe(request, schedule)
        else:
            request.schedule = schedule
            schedule_number(schedule, COLLECTIVE_NON_BLOCKING)
            schedule_start(schedule)
    call_leave(<EndpointCore>world.core)
    return code


# -- for other calls -----------------------------------------------------------------------

cdef int barrier_of_world() noexcept nogil:
    """Of MPI_Finalize: no call of the program's matches it."""
    cdef Schedule *schedule = begin(comm_world())
    if schedule != NULL:
        schedule_tagged(schedule, TAG_MAX)
        build_barrier(schedule)
    return run(comm_world(), schedule, NULL)


cdef int broadcast_bytes(Comm *comm, void *data, int64_t length, int root) noexcept nogil:
    cdef Schedule *schedule = begin(comm)
    if schedule != NULL:
        build_broadcast(schedule, data, length, root)
    return run(comm, schedule, NULL)


cdef int allgather_bytes(Comm *comm, const void *own, void *into, int64_t length) noexcept nogil:
    cdef Schedule *schedule = begin(comm)
    cdef Parts parts = Parts(<uint8_t *>into, length, NULL, NULL)
    if schedule != NULL:
        build_allgather(schedule, own, length, &parts)
    return run(comm, schedule, NULL)


cdef int barrier_as(Comm *comm, MPI_Request *request) noexcept nogil:
    cdef Schedule *schedule = begin(comm)
    if schedule != NULL:
        build_barrier(schedule)
    return run(comm, schedule, request)


cdef int barrier_on(Comm *comm) noexcept nogil:
    return barrier_as(comm, NULL)


cdef int barrier(MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    return ended(comm, barrier_as(comm, request))


cdef void collective_fill(mpi_table *table) noexcept nogil:
    table.Ibarrier = barrier
    describe_fill(table)


# -- Broadcast, gather, scatter, allgather and alltoall (MPI 3.1, 5.4 to 5.8).
#
# A call without a request waits.

cdef int bcast(void *data, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm handle,
               MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Elements elements = elements_of_one(data, count, datatype)
    cdef Schedule *schedule
    cdef Parts part
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if is_beside_root(comm, root):
        return ended(comm, run(comm, begin(comm), request))
    code = max(elements_check(&elements, 1), check_root(comm, root))
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    schedule = begin(comm)
    if schedule != NULL:
        part = parts_to_receive(schedule, &elements, 1, is_root(comm, root))
        build_broadcast(schedule, part.data, part.length, root)
        if not is_root(comm, root):
            elements_receive(schedule, &elements, &part, 1)
    return ended(comm, run(comm, schedule, request))


cdef int gather_as(const void *data, MPI_Count count, MPI_Datatype datatype,
                   const Elements *all_parts, bint even, int root, MPI_Comm handle,
                   MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Elements own = elements_of_one(data, count, datatype)
    cdef Schedule *schedule
    cdef Parts sent, received
    cdef bint at_root
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if is_beside_root(comm, root):
        return ended(comm, run(comm, begin(comm), request))
    at_root = is_root(comm, root)
    if at_root and comm.remote != NULL:
        own = nothing_of_its_own()
    code = check_root(comm, root)
    if code == MPI_SUCCESS and at_root:
        code = elements_check(all_parts, comm.peers)
    if code == MPI_SUCCESS:
        code = check_own(&own, at_root)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    schedule = begin(comm)
    if schedule != NULL:
        if at_root:
            received = parts_to_receive(schedule, all_parts, comm.peers, in_place(own.data))
        sent = own_to_send(schedule, &own)
        build_gather(schedule, sent.data, sent.length, &received, root, even)
        if at_root:
            elements_receive(schedule, all_parts, &received, comm.peers)
    return ended(comm, run(comm, schedule, request))


cdef int scatter_as(const Elements *all_parts, bint even, void *into, MPI_Count into_count,
                    MPI_Datatype into_datatype, int root, MPI_Comm handle,
                    MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Elements own = elements_of_one(into, into_count, into_datatype)
    cdef Schedule *schedule
    cdef Parts sent
    cdef Parts received = Parts(NULL, 0, NULL, NULL)
    cdef bint at_root
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if is_beside_root(comm, root):
        return ended(comm, run(comm, begin(comm), request))
    at_root = is_root(comm, root)
    if at_root and comm.remote != NULL:
        own = nothing_of_its_own()
    code = check_root(comm, root)
    if code == MPI_SUCCESS and at_root:
        code = elements_check(all_parts, comm.peers)
    if code == MPI_SUCCESS:
        code = check_own(&own, at_root)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    schedule = begin(comm)
    if schedule != NULL:
        if at_root:
            sent = parts_to_send(schedule, all_parts, comm.peers)
        if not in_place(own.data):
            received = parts_to_receive(schedule, &own, 1, False)
        build_scatter(schedule, &sent, received.data, received.length, root, even)
        if not in_place(own.data):
            elements_receive(schedule, &own, &received, 1)
    return ended(comm, run(comm, schedule, request))


cdef int allgather_as(const void *data, MPI_Count count, MPI_Datatype datatype,
                      const Elements *all_parts, MPI_Comm handle,
                      MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Elements own = elements_of_one(data, count, datatype)
    cdef Schedule *schedule
    cdef Parts sent, received
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = elements_check(all_parts, comm.peers)
    if code == MPI_SUCCESS:
        code = check_own(&own, comm.remote == NULL)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    schedule = begin(comm)
    if schedule != NULL:
        received = parts_to_receive(schedule, all_parts, comm.peers, in_place(data))
        sent = own_to_send(schedule, &own)
        build_allgather(schedule, sent.data, sent.length, &received)
        elements_receive(schedule, all_parts, &received, comm.peers)
    return ended(comm, run(comm, schedule, request))


cdef int alltoall_as(const Elements *from_here, const Elements *to_here, MPI_Comm handle,
                     MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Schedule *schedule
    cdef Parts sent, received
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = elements_check(to_here, comm.peers)
    if code == MPI_SUCCESS and not in_place(from_here.data):
        code = elements_check(from_here, comm.peers)
    elif code == MPI_SUCCESS and comm.remote != NULL:
        code = MPI_ERR_BUFFER
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    schedule = begin(comm)
    if schedule != NULL:
        received = parts_to_receive(schedule, to_here, comm.peers, in_place(from_here.data))
        # What is sent in place would be overwritten.
        sent = (parts_copy(schedule, &received, comm.peers) if in_place(from_here.data)
                else parts_to_send(schedule, from_here, comm.peers))
        build_alltoall(schedule, &sent, &received, to_here.counts.numbers == NULL)
        elements_receive(schedule, to_here, &received, comm.peers)
    return ended(comm, run(comm, schedule, request))


cdef Elements nothing_of_its_own() noexcept nogil:
    """Of the root of an inter-communicator, whose data are those of the other group."""
    return elements_of_one(place_itself(), 0, 0)


cdef int check_own(const Elements *own, bint may_be_in_place) noexcept nogil:
    if in_place(own.data):
        return MPI_SUCCESS if may_be_in_place else MPI_ERR_BUFFER
    return elements_check(own, 1)


cdef Parts own_to_send(Schedule *schedule, const Elements *own) noexcept nogil:
    """Without data if they are in place."""
    if in_place(own.data):
        return Parts(NULL, 0, NULL, NULL)
    return parts_to_send(schedule, own, 1)


# -- calls -------------------------------------------------------------------------------

cdef int gather(const void *data, MPI_Count count, MPI_Datatype datatype, void *into,
                MPI_Count into_count, MPI_Datatype into_datatype, int root, MPI_Comm comm,
                MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_of_one(into, into_count, into_datatype)
    return gather_as(data, count, datatype, &parts, True, root, comm, request)


cdef int gatherv(const void *data, MPI_Count count, MPI_Datatype datatype, void *into,
                 Counts counts, Counts places, MPI_Datatype into_datatype, int root, MPI_Comm comm,
                 MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_with_counts(into, counts, places, into_datatype)
    return gather_as(data, count, datatype, &parts, False, root, comm, request)


cdef int scatter(const void *data, MPI_Count count, MPI_Datatype datatype, void *into,
                 MPI_Count into_count, MPI_Datatype into_datatype, int root, MPI_Comm comm,
                 MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_of_one(data, count, datatype)
    return scatter_as(&parts, True, into, into_count, into_datatype, root, comm, request)


cdef int scatterv(const void *data, Counts counts, Counts places, MPI_Datatype datatype, void *into,
                  MPI_Count into_count, MPI_Datatype into_datatype, int root, MPI_Comm comm,
                  MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_with_counts(data, counts, places, datatype)
    return scatter_as(&parts, False, into, into_count, into_datatype, root, comm, request)


cdef int allgather(const void *data, MPI_Count count, MPI_Datatype datatype, void *into,
                   MPI_Count into_count, MPI_Datatype into_datatype, MPI_Comm comm,
                   MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_of_one(into, into_count, into_datatype)
    return allgather_as(data, count, datatype, &parts, comm, request)


cdef int allgatherv(const void *data, MPI_Count count, MPI_Datatype datatype, void *into,
                    Counts counts, Counts places, MPI_Datatype into_datatype,
                    MPI_Comm comm, MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_with_counts(into, counts, places, into_datatype)
    return allgather_as(data, count, datatype, &parts, comm, request)


cdef int alltoall(const void *data, MPI_Count count, MPI_Datatype datatype, void *into,
                  MPI_Count into_count, MPI_Datatype into_datatype, MPI_Comm comm,
                  MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_of_one(data, count, datatype)
    cdef Elements received = elements_of_one(into, into_count, into_datatype)
    return alltoall_as(&sent, &received, comm, request)


cdef int alltoallv(const void *data, Counts counts, Counts places, MPI_Datatype datatype,
                   void *into, Counts into_counts, Counts into_places,
                   MPI_Datatype into_datatype, MPI_Comm comm,
                   MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_with_counts(data, counts, places, datatype)
    cdef Elements received = elements_with_counts(into, into_counts, into_places, into_datatype)
    return alltoall_as(&sent, &received, comm, request)


cdef int alltoallw(const void *data, Counts counts, Counts places,
                   const MPI_Datatype *datatypes, void *into, Counts into_counts,
                   Counts into_places, const MPI_Datatype *into_datatypes, MPI_Comm comm,
                   MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_with_types(data, counts, places, datatypes)
    cdef Elements received = elements_with_types(into, into_counts, into_places,
                                                 into_datatypes)
    return alltoall_as(&sent, &received, comm, request)


cdef void data_calls_fill(mpi_table *table) noexcept nogil:
    table.Ibcast = bcast
    table.Igather = gather
    table.Igatherv = gatherv
    table.Iscatter = scatter
    table.Iscatterv = scatterv
    table.Iallgather = allgather
    table.Iallgatherv = allgatherv
    table.Ialltoall = alltoall
    table.Ialltoallv = alltoallv
    table.Ialltoallw = alltoallw


# -- Reduce, allreduce, scan and reduce-scatter (MPI 3.1, 5.9 to 5.11).
#
# A call without a request waits.

# A reduction under way: `data` and `into` are what its schedule computes with, in memory of its own
# if the user's elements have gaps, which stay as they are.
cdef struct Reduction:
    Schedule *schedule
    Datatype *type
    const void *data
    void *into
    void *wanted_in          # by the user
    int64_t unit             # bytes from an element to the next
    bint has_gaps


cdef int begin_reduction(Reduction *reduction, Comm *comm, const void *data, int64_t count,
                         MPI_Datatype datatype, MPI_Op operation, void *into,
                         int64_t results) noexcept nogil:
    """A schedule for it, under the lock; or the class of an error, and no lock. `results`: how many
    elements this rank gets."""
    cdef Datatype *type = datatype_for(datatype, count)
    cdef int code = operation_check(operation, datatype, count)
    if in_place(data) and comm.remote != NULL:
        code = MPI_ERR_BUFFER
    if code == MPI_SUCCESS and not fits(type):
        code = MPI_ERR_UNSUPPORTED_OPERATION
    if code == MPI_SUCCESS and not bytes_fit(type.extent, count):
        code = MPI_ERR_COUNT
    if code == MPI_SUCCESS and (data_missing(into, type, count if in_place(data) else results)
                                or (not in_place(data) and data_missing(data, type, count))):
        code = MPI_ERR_BUFFER
    if code != MPI_SUCCESS:
        return code
    reduction.schedule = begin(comm)
    if reduction.schedule == NULL:
        return MPI_ERR_NO_MEM
    reduction.schedule.operation = operation
    operation_keep(operation)
    reduction.schedule.datatype = type.handle
    reduction.schedule.reduced = type
    datatype_remember(type, &type.reductions)
    reduction.type = type
    reduction.unit = type.extent
    reduction.has_gaps = type.combiner != MPI_COMBINER_NAMED and not type.dense
    reduction.data = data
    if in_place(data):
        reduction.data = into
    reduction.into = reduction.wanted_in = into
    if reduction.has_gaps:
        reduction.into = schedule_take(reduction.schedule, count * type.extent)
        reduction.data = collect(reduction, count)
    return MPI_SUCCESS


cdef bint fits(const Datatype *type) noexcept nogil:
    """Whether an element begins at its place, and ends before the next: an operation is called with
    elements in memory of this library too, where nothing is beside them."""
    return (type.lower == 0 and type.true_lower >= 0
            and type.true_lower + type.true_extent <= type.extent)


cdef const void *collect(const Reduction *reduction, int64_t count) noexcept nogil:
    """The user's elements where nothing is read from their gaps."""
    cdef Schedule *schedule = reduction.schedule
    cdef void *elements = schedule_take(schedule, count * reduction.unit)
    cdef void *packed = schedule_take(schedule, count * reduction.type.size)
    schedule_pack(schedule, reduction.type, reduction.data, count, packed)
    schedule_unpack(schedule, reduction.type, packed, elements, count)
    return elements


cdef void finish_reduction(const Reduction *reduction, int64_t count) noexcept nogil:
    """The last step: `count` elements of the result go where the user wants them."""
    cdef Schedule *schedule = reduction.schedule
    cdef void *packed
    if reduction.has_gaps:
        packed = schedule_take(schedule, count * reduction.type.size)
        schedule_round(schedule)
        schedule_pack(schedule, reduction.type, reduction.into, count, packed)
        schedule_unpack(schedule, reduction.type, packed, reduction.wanted_in, count)


# -- calls -------------------------------------------------------------------------------

cdef int reduce(const void *data, void *into, MPI_Count count, MPI_Datatype datatype,
                MPI_Op operation, int root, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Reduction reduction
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if is_beside_root(comm, root):
        return ended(comm, run(comm, begin(comm), request))
    if check_root(comm, root) != MPI_SUCCESS:
        return error_raise(comm, MPI_ERR_ROOT)
    if in_place(data) and not is_root(comm, root):
        return error_raise(comm, MPI_ERR_BUFFER)
    if root == MPI_ROOT:
        data = into  # it has none of its own
    code = begin_reduction(&reduction, comm, data, count, datatype, operation, into,
                           count if is_root(comm, root) else 0)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    build_reduce(reduction.schedule, reduction.data, reduction.into, count, reduction.unit, root)
    if is_root(comm, root):
        finish_reduction(&reduction, count)
    return ended(comm, run(comm, reduction.schedule, request))


cdef int allreduce(const void *data, void *into, MPI_Count count, MPI_Datatype datatype,
                   MPI_Op operation, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Reduction reduction
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = begin_reduction(&reduction, comm, data, count, datatype, operation, into, count)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    build_allreduce(reduction.schedule, reduction.data, reduction.into, count, reduction.unit)
    finish_reduction(&reduction, count)
    return ended(comm, run(comm, reduction.schedule, request))


cdef int scan_as(const void *data, void *into, MPI_Count count, MPI_Datatype datatype,
                 MPI_Op operation, MPI_Comm handle, MPI_Request *request,
                 bint exclusive) noexcept nogil:
    cdef Comm *comm = comm_intra_of(handle)
    cdef Reduction reduction
    cdef int code
    if comm == NULL:
        return error_raise(comm_of(handle), MPI_ERR_COMM)
    # Rank 0 has no result of an exclusive scan.
    code = begin_reduction(&reduction, comm, data, count, datatype, operation, into,
                           count if not exclusive or comm.rank > 0 else 0)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    build_scan(reduction.schedule, reduction.data, reduction.into, count, reduction.unit,
               exclusive)
    if not exclusive or comm.rank > 0:
        finish_reduction(&reduction, count)
    return ended(comm, run(comm, reduction.schedule, request))


cdef int scan(const void *data, void *into, MPI_Count count, MPI_Datatype datatype,
              MPI_Op operation, MPI_Comm comm, MPI_Request *request) noexcept nogil:
    return scan_as(data, into, count, datatype, operation, comm, request, False)


cdef int exscan(const void *data, void *into, MPI_Count count, MPI_Datatype datatype,
                MPI_Op operation, MPI_Comm comm, MPI_Request *request) noexcept nogil:
    return scan_as(data, into, count, datatype, operation, comm, request, True)


cdef int reduce_scatter_as(const void *data, void *into, MPI_Count count, Counts counts,
                           MPI_Datatype datatype, MPI_Op operation, MPI_Comm handle,
                           MPI_Request *request) noexcept nogil:
    """Each rank gets `count` elements, or `counts[rank]`."""
    cdef Comm *comm = comm_of(handle)
    cdef Reduction reduction
    cdef int64_t total = 0, least = count, own
    cdef int rank, code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    for rank in range(comm.size):
        total += count_of(count, counts, rank)
        least = min(least, count_of(count, counts, rank))
    own = count_of(count, counts, comm.rank)
    code = MPI_ERR_COUNT if least < 0 else begin_reduction(
        &reduction, comm, data, total, datatype, operation, into, own)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    build_reduce_scatter(reduction.schedule, reduction.data, reduction.into, count, counts,
                         reduction.unit)
    finish_reduction(&reduction, own)
    return ended(comm, run(comm, reduction.schedule, request))


cdef int reduce_scatter(const void *data, void *into, Counts counts, MPI_Datatype datatype,
                        MPI_Op operation, MPI_Comm comm, MPI_Request *request) noexcept nogil:
    if counts.numbers == NULL:
        return error_raise(comm_of(comm), MPI_ERR_ARG)
    return reduce_scatter_as(data, into, 0, counts, datatype, operation, comm, request)


cdef int reduce_scatter_block(const void *data, void *into, MPI_Count count, MPI_Datatype datatype,
                              MPI_Op operation, MPI_Comm comm,
                              MPI_Request *request) noexcept nogil:
    return reduce_scatter_as(data, into, count, no_counts(), datatype, operation, comm, request)


cdef void reduction_calls_fill(mpi_table *table) noexcept nogil:
    table.Ireduce = reduce
    table.Iallreduce = allreduce
    table.Iscan = scan
    table.Iexscan = exscan
    table.Ireduce_scatter = reduce_scatter
    table.Ireduce_scatter_block = reduce_scatter_block


# -- Collectives among the neighbours of a topology (MPI 3.1, 7.6): all messages at once.
#
# A call without a request waits. In a grid what is sent in the negative direction is received from
# the positive one, which makes a difference where both neighbours are the same process: there
# messages match in the order in which they are sent.

cdef int exchange(Elements *from_here, bint same, Elements *to_here, MPI_Comm handle,
                  MPI_Request *request) noexcept nogil:
    """`same`: the one part of `from_here` goes to all neighbours."""
    cdef Comm *comm = comm_of(handle)
    cdef const Topology *topology
    cdef Schedule *schedule
    cdef Parts sent = Parts(NULL, 0, NULL, NULL)
    cdef Parts received = Parts(NULL, 0, NULL, NULL)
    cdef int sources, targets, code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    topology = comm.topology
    if topology == NULL:
        return error_raise(comm, MPI_ERR_TOPOLOGY)
    sources = topology.indegree
    targets = reached(topology) if same else topology.outdegree
    to_here.peers = topology.sources
    if not same:
        from_here.peers = topology.destinations
    code = elements_check(to_here, sources)
    if code == MPI_SUCCESS:
        code = elements_check(from_here, targets)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    schedule = begin(comm)
    if schedule != NULL:
        if sources > 0:
            received = parts_to_receive(schedule, to_here, sources, False)
        if targets > 0:
            sent = parts_to_send(schedule, from_here, targets)
        build_exchange(schedule, topology, &sent, same, &received)
        if sources > 0:
            elements_receive(schedule, to_here, &received, sources)
    return ended(comm, run(comm, schedule, request))


cdef bint reached(const Topology *topology) noexcept nogil:
    """Whether this rank sends to any process."""
    cdef int turn
    for turn in range(topology.outdegree):
        if topology.destinations[turn] != MPI_PROC_NULL:
            return True
    return False


cdef void build_exchange(Schedule *schedule, const Topology *topology, const Parts *sent,
                         bint same, const Parts *received) noexcept nogil:
    cdef int turn, place
    for turn in range(topology.indegree):
        place = turn ^ 1 if topology.kind == MPI_CART else turn
        if topology.sources[place] != MPI_PROC_NULL:
            schedule_receive(schedule, topology.sources[place], part_at(received, place),
                             part_bytes(received, place))
    for turn in range(topology.outdegree):
        place = 0 if same else turn
        if topology.destinations[turn] != MPI_PROC_NULL:
            schedule_send(schedule, topology.destinations[turn], part_at(sent, place),
                          part_bytes(sent, place))


cdef int neighbor_allgather(const void *data, MPI_Count count, MPI_Datatype datatype, void *into,
                            MPI_Count into_count, MPI_Datatype into_datatype, MPI_Comm comm,
                            MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_of_one(data, count, datatype)
    cdef Elements received = elements_of_one(into, into_count, into_datatype)
    return exchange(&sent, True, &received, comm, request)


cdef int neighbor_allgatherv(const void *data, MPI_Count count, MPI_Datatype datatype, void *into,
                             Counts counts, Counts places, MPI_Datatype into_datatype,
                             MPI_Comm comm, MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_of_one(data, count, datatype)
    cdef Elements received = elements_with_counts(into, counts, places, into_datatype)
    return exchange(&sent, True, &received, comm, request)


cdef int neighbor_alltoall(const void *data, MPI_Count count, MPI_Datatype datatype, void *into,
                           MPI_Count into_count, MPI_Datatype into_datatype, MPI_Comm comm,
                           MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_of_one(data, count, datatype)
    cdef Elements received = elements_of_one(into, into_count, into_datatype)
    return exchange(&sent, False, &received, comm, request)


cdef int neighbor_alltoallv(const void *data, Counts counts, Counts places,
                            MPI_Datatype datatype, void *into, Counts into_counts,
                            Counts into_places, MPI_Datatype into_datatype, MPI_Comm comm,
                            MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_with_counts(data, counts, places, datatype)
    cdef Elements received = elements_with_counts(into, into_counts, into_places, into_datatype)
    return exchange(&sent, False, &received, comm, request)


cdef int neighbor_alltoallw(const void *data, Counts counts, const MPI_Aint *places,
                            const MPI_Datatype *datatypes, void *into, Counts into_counts,
                            const MPI_Aint *into_places, const MPI_Datatype *into_datatypes,
                            MPI_Comm comm, MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_with_types(data, counts, Counts(places, True), datatypes)
    cdef Elements received = elements_with_types(into, into_counts, Counts(into_places, True),
                                                 into_datatypes)
    return exchange(&sent, False, &received, comm, request)


cdef void neighborhood_fill(mpi_table *table) noexcept nogil:
    table.Ineighbor_allgather = neighbor_allgather
    table.Ineighbor_allgatherv = neighbor_allgatherv
    table.Ineighbor_alltoall = neighbor_alltoall
    table.Ineighbor_alltoallv = neighbor_alltoallv
    table.Ineighbor_alltoallw = neighbor_alltoallw
