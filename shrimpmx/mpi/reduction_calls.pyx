"""Reduce, allreduce, scan and reduce-scatter (MPI 3.1, 5.9 to 5.11)."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_Datatype, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_NO_MEM,
    MPI_ERR_ROOT, MPI_Op, MPI_Request, MPI_SUCCESS, in_place,
)
from shrimpmx.mpi.collective cimport begin, check_parts, check_root, ended, run
from shrimpmx.mpi.communicator cimport Comm, comm_of
from shrimpmx.mpi.datatype cimport datatype_bytes
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.exchange cimport Parts, build_scatter, part_bytes
from shrimpmx.mpi.operation cimport operation_check
from shrimpmx.mpi.reduction cimport (
    build_allreduce, build_reduce, build_scan, room_of_reduction,
)
from shrimpmx.mpi.schedule cimport Schedule, schedule_round
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mx.types cimport MESSAGE_MAX_BYTES


cdef Schedule *begin_reduction(Comm *comm, const void **data, void *into, int64_t count,
                               MPI_Datatype datatype, MPI_Op operation,
                               int *code) noexcept nogil:
    """A schedule for it, under the lock; or NULL, with an error in `code`, and no lock."""
    cdef Schedule *schedule
    code[0] = operation_check(operation, datatype)
    if code[0] == MPI_SUCCESS and not 0 <= count * datatype_bytes(datatype) <= MESSAGE_MAX_BYTES:
        code[0] = MPI_ERR_COUNT
    if code[0] != MPI_SUCCESS:
        return NULL
    if in_place(data[0]):
        data[0] = into
    schedule = begin(comm, room_of_reduction(comm.size, operation,
                                             count * datatype_bytes(datatype)))
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
    sum = (schedule.room - total * parts.unit
           + room_of_reduction(comm.size, operation, total * parts.unit))
    build_reduce(schedule, data, sum, total, parts.unit, 0)
    schedule_round(schedule)
    parts.data = sum
    build_scatter(schedule, &parts, into, part_bytes(&parts, comm.rank), 0)
    return ended(comm, run(comm, schedule, request))


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


cdef void reduction_calls_fill(mpi_table *table) noexcept nogil:
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
