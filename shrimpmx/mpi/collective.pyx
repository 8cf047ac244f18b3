"""A collective call checks its arguments, builds a schedule and starts it.

A blocking call waits for it; a non-blocking one makes a request of it (MPI 3.1, 5.12).
"""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_Datatype, MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_NO_MEM, MPI_ERR_TYPE,
    MPI_Request, MPI_REQUEST_NULL, MPI_SUCCESS,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of, comm_world
from shrimpmx.mpi.datatype cimport TYPE_INVALID, datatype_bytes
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.exchange cimport (
    Parts, build_allgather, build_barrier, build_broadcast, part_bytes,
)
from shrimpmx.mpi.request cimport KIND_COLLECTIVE, Request, request_new
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_end, schedule_new, schedule_over, schedule_start, schedules_advance,
)
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MESSAGE_MAX_BYTES


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
    for rank in range(size if counts != NULL else min(1, size)):
        if not 0 <= part_bytes(parts, rank) <= MESSAGE_MAX_BYTES:
            return MPI_ERR_COUNT
    return MPI_SUCCESS


cdef int check_one(int64_t *length, int count, MPI_Datatype datatype) noexcept nogil:
    cdef int unit = datatype_bytes(datatype)
    length[0] = <int64_t>count * unit
    if unit == TYPE_INVALID:
        return MPI_ERR_TYPE
    return MPI_SUCCESS if 0 <= length[0] <= MESSAGE_MAX_BYTES else MPI_ERR_COUNT


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
        build_allgather(schedule, own, length, &parts)
    return run(comm, schedule, NULL)


cdef int barrier_as(Comm *comm, MPI_Request *request) noexcept nogil:
    cdef Schedule *schedule = begin(comm, 0)
    if schedule != NULL:
        build_barrier(schedule)
    return run(comm, schedule, request)


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


cdef void collective_fill(mpi_table *table) noexcept nogil:
    table.Barrier = barrier
    table.Ibarrier = ibarrier
