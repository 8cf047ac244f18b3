"""Reduce, allreduce, scan and reduce-scatter (MPI 3.1, 5.9 to 5.11).

A call without a request waits.
"""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport (
    MPI_COMBINER_NAMED, MPI_Comm, MPI_Datatype, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_ERR_COUNT,
    MPI_ERR_NO_MEM, MPI_ERR_ROOT, MPI_ERR_UNSUPPORTED_OPERATION, MPI_Op, MPI_Request, MPI_ROOT,
    MPI_SUCCESS, in_place,
)
from shrimpmx.mpi.collective cimport begin, check_root, ended, is_beside_root, is_root, run
from shrimpmx.mpi.communicator cimport Comm, comm_intra_of, comm_of
from shrimpmx.mpi.datatype cimport Datatype, datatype_for, datatype_remember
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.operation cimport operation_check, operation_keep
from shrimpmx.mpi.reduce_scatter cimport build_reduce_scatter
from shrimpmx.mpi.reduction cimport build_allreduce, build_reduce
from shrimpmx.mpi.scan cimport build_scan
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_pack, schedule_round, schedule_take, schedule_unpack,
)
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mx.types cimport MESSAGE_MAX_BYTES


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
                         MPI_Datatype datatype, MPI_Op operation, void *into) noexcept nogil:
    """A schedule for it, under the lock; or the class of an error, and no lock."""
    cdef Datatype *type = datatype_for(datatype, count)
    cdef int code = operation_check(operation, datatype, count)
    if in_place(data) and comm.remote != NULL:
        code = MPI_ERR_BUFFER
    if code == MPI_SUCCESS and not fits(type):
        code = MPI_ERR_UNSUPPORTED_OPERATION
    if code == MPI_SUCCESS and (count < 0 or (type.extent > MESSAGE_MAX_BYTES and count > 0)
                                or count * type.extent > MESSAGE_MAX_BYTES):
        code = MPI_ERR_COUNT
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

cdef int reduce(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
                int root, MPI_Comm handle, MPI_Request *request) noexcept nogil:
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
    code = begin_reduction(&reduction, comm, data, count, datatype, operation, into)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    build_reduce(reduction.schedule, reduction.data, reduction.into, count, reduction.unit, root)
    if is_root(comm, root):
        finish_reduction(&reduction, count)
    return ended(comm, run(comm, reduction.schedule, request))


cdef int allreduce(const void *data, void *into, int count, MPI_Datatype datatype,
                   MPI_Op operation, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Reduction reduction
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = begin_reduction(&reduction, comm, data, count, datatype, operation, into)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    build_allreduce(reduction.schedule, reduction.data, reduction.into, count, reduction.unit)
    finish_reduction(&reduction, count)
    return ended(comm, run(comm, reduction.schedule, request))


cdef int scan_as(const void *data, void *into, int count, MPI_Datatype datatype,
                 MPI_Op operation, MPI_Comm handle, MPI_Request *request,
                 bint exclusive) noexcept nogil:
    cdef Comm *comm = comm_intra_of(handle)
    cdef Reduction reduction
    cdef int code
    if comm == NULL:
        return error_raise(comm_of(handle), MPI_ERR_COMM)
    code = begin_reduction(&reduction, comm, data, count, datatype, operation, into)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    build_scan(reduction.schedule, reduction.data, reduction.into, count, reduction.unit,
               exclusive)
    # Rank 0 has no result of an exclusive scan.
    if not exclusive or comm.rank > 0:
        finish_reduction(&reduction, count)
    return ended(comm, run(comm, reduction.schedule, request))


cdef int scan(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
              MPI_Comm comm, MPI_Request *request) noexcept nogil:
    return scan_as(data, into, count, datatype, operation, comm, request, False)


cdef int exscan(const void *data, void *into, int count, MPI_Datatype datatype, MPI_Op operation,
                MPI_Comm comm, MPI_Request *request) noexcept nogil:
    return scan_as(data, into, count, datatype, operation, comm, request, True)


cdef int reduce_scatter_as(const void *data, void *into, int count, const int *counts,
                           MPI_Datatype datatype, MPI_Op operation, MPI_Comm handle,
                           MPI_Request *request) noexcept nogil:
    """Each rank gets `count` elements, or `counts[rank]`."""
    cdef Comm *comm = comm_of(handle)
    cdef Reduction reduction
    cdef int64_t total = 0
    cdef int rank, own, code, least = count
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    for rank in range(comm.size):
        total += count if counts == NULL else counts[rank]
        least = min(least, count if counts == NULL else counts[rank])
    own = count if counts == NULL else counts[comm.rank]
    code = MPI_ERR_COUNT if least < 0 else begin_reduction(
        &reduction, comm, data, total, datatype, operation, into)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    build_reduce_scatter(reduction.schedule, reduction.data, reduction.into, count, counts,
                         reduction.unit)
    finish_reduction(&reduction, own)
    return ended(comm, run(comm, reduction.schedule, request))


cdef int reduce_scatter(const void *data, void *into, const int *counts, MPI_Datatype datatype,
                        MPI_Op operation, MPI_Comm comm, MPI_Request *request) noexcept nogil:
    return reduce_scatter_as(data, into, 0, counts, datatype, operation, comm, request)


cdef int reduce_scatter_block(const void *data, void *into, int count, MPI_Datatype datatype,
                              MPI_Op operation, MPI_Comm comm,
                              MPI_Request *request) noexcept nogil:
    return reduce_scatter_as(data, into, count, NULL, datatype, operation, comm, request)


cdef void reduction_calls_fill(mpi_table *table) noexcept nogil:
    table.Ireduce = reduce
    table.Iallreduce = allreduce
    table.Iscan = scan
    table.Iexscan = exscan
    table.Ireduce_scatter = reduce_scatter
    table.Ireduce_scatter_block = reduce_scatter_block
