"""Broadcast, gather, scatter, allgather and alltoall (MPI 3.1, 5.4 to 5.8)."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_Datatype, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_Request, MPI_SUCCESS, in_place,
)
from shrimpmx.mpi.collective cimport (
    begin, check_one, check_parts, check_root, ended, own_of, run,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.exchange cimport (
    Parts, build_allgather, build_alltoall, build_broadcast, build_gather, build_scatter, part_at,
    part_bytes,
)
from shrimpmx.mpi.schedule cimport Schedule, schedule_copy
from shrimpmx.mpi.table cimport mpi_table


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
    cdef int64_t length = 0
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
        build_allgather(schedule, own_of(data), length, &parts)
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


cdef void data_calls_fill(mpi_table *table) noexcept nogil:
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
