"""A collective call checks its arguments, builds a schedule and starts it.

A blocking call waits for it; a non-blocking one makes a request of it (MPI 3.1, 5.12).
"""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_ERR_COMM, MPI_ERR_NO_MEM, MPI_Request, MPI_REQUEST_NULL, MPI_SUCCESS,
)
from shrimpmx.mpi.allgather cimport build_allgather
from shrimpmx.mpi.broadcast cimport build_broadcast
from shrimpmx.mpi.communicator cimport Comm, comm_of, comm_world
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.error_code cimport CODE_INTERRUPTED, DETAIL_REQUESTS, error_detailed
from shrimpmx.mpi.exchange cimport build_barrier
from shrimpmx.mpi.matching cimport TAG_MAX
from shrimpmx.mpi.parts cimport Parts
from shrimpmx.mpi.request cimport KIND_COLLECTIVE, Request, request_new
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_awaits, schedule_end, schedule_leave, schedule_new, schedule_over,
    schedule_start, schedule_tagged,
)
from shrimpmx.mpi.shown cimport Awaited, awaited_message
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library


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


cdef int run(Comm *comm, Schedule *schedule, MPI_Request *handle) noexcept nogil:
    """Starts a schedule; waits for it if `handle` is NULL. The class of an error."""
    cdef Request *request
    cdef int code = MPI_SUCCESS
    if schedule == NULL:
        return MPI_ERR_NO_MEM
    if handle == NULL:
        schedule_start(schedule, True)
        if not schedule_over(schedule):
            if not world_wait(found_over, awaited_by_collective, schedule):
                schedule_leave(schedule)
                call_leave(<EndpointCore>world.core)
                return CODE_INTERRUPTED
        code = schedule_end(schedule)
    else:
        request = request_new(KIND_COLLECTIVE, comm)
        handle[0] = MPI_REQUEST_NULL if request == NULL else request.handle
        if request == NULL:
            schedule_end(schedule)
            code = error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS)
        else:
            request.schedule = schedule
            schedule_start(schedule, False)
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


cdef int barrier(MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    return ended(comm, barrier_as(comm, request))


cdef void collective_fill(mpi_table *table) noexcept nogil:
    table.Ibarrier = barrier
