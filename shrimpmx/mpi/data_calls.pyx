"""Broadcast, gather, scatter, allgather and alltoall (MPI 3.1, 5.4 to 5.8).

A call without a request waits.
"""

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_Datatype, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_Request, MPI_SUCCESS, in_place,
    place_itself,
)
from shrimpmx.mpi.allgather cimport build_allgather
from shrimpmx.mpi.alltoall cimport build_alltoall
from shrimpmx.mpi.broadcast cimport build_broadcast
from shrimpmx.mpi.collective cimport begin, check_root, ended, is_beside_root, is_root, run
from shrimpmx.mpi.communicator cimport Comm, comm_of
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.gather cimport build_gather, build_scatter
from shrimpmx.mpi.parts cimport (
    Elements, Parts, elements_check, elements_of_one, elements_receive, elements_with_counts,
    parts_copy, parts_to_receive, parts_to_send,
)
from shrimpmx.mpi.schedule cimport Schedule
from shrimpmx.mpi.table cimport mpi_table


cdef int bcast(void *data, int count, MPI_Datatype datatype, int root, MPI_Comm handle,
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


cdef int gather_as(const void *data, int count, MPI_Datatype datatype, const Elements *all_parts,
                   bint even, int root, MPI_Comm handle, MPI_Request *request) noexcept nogil:
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


cdef int scatter_as(const Elements *all_parts, bint even, void *into, int into_count,
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


cdef int allgather_as(const void *data, int count, MPI_Datatype datatype,
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
        build_alltoall(schedule, &sent, &received, to_here.counts == NULL)
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

cdef int gather(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                MPI_Datatype into_datatype, int root, MPI_Comm comm,
                MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_of_one(into, into_count, into_datatype)
    return gather_as(data, count, datatype, &parts, True, root, comm, request)


cdef int gatherv(const void *data, int count, MPI_Datatype datatype, void *into, const int *counts,
                 const int *places, MPI_Datatype into_datatype, int root, MPI_Comm comm,
                 MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_with_counts(into, counts, places, into_datatype)
    return gather_as(data, count, datatype, &parts, False, root, comm, request)


cdef int scatter(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                 MPI_Datatype into_datatype, int root, MPI_Comm comm,
                 MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_of_one(data, count, datatype)
    return scatter_as(&parts, True, into, into_count, into_datatype, root, comm, request)


cdef int scatterv(const void *data, const int *counts, const int *places, MPI_Datatype datatype,
                  void *into, int into_count, MPI_Datatype into_datatype, int root, MPI_Comm comm,
                  MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_with_counts(data, counts, places, datatype)
    return scatter_as(&parts, False, into, into_count, into_datatype, root, comm, request)


cdef int allgather(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                   MPI_Datatype into_datatype, MPI_Comm comm,
                   MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_of_one(into, into_count, into_datatype)
    return allgather_as(data, count, datatype, &parts, comm, request)


cdef int allgatherv(const void *data, int count, MPI_Datatype datatype, void *into,
                    const int *counts, const int *places, MPI_Datatype into_datatype,
                    MPI_Comm comm, MPI_Request *request) noexcept nogil:
    cdef Elements parts = elements_with_counts(into, counts, places, into_datatype)
    return allgather_as(data, count, datatype, &parts, comm, request)


cdef int alltoall(const void *data, int count, MPI_Datatype datatype, void *into, int into_count,
                  MPI_Datatype into_datatype, MPI_Comm comm, MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_of_one(data, count, datatype)
    cdef Elements received = elements_of_one(into, into_count, into_datatype)
    return alltoall_as(&sent, &received, comm, request)


cdef int alltoallv(const void *data, const int *counts, const int *places, MPI_Datatype datatype,
                   void *into, const int *into_counts, const int *into_places,
                   MPI_Datatype into_datatype, MPI_Comm comm,
                   MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_with_counts(data, counts, places, datatype)
    cdef Elements received = elements_with_counts(into, into_counts, into_places, into_datatype)
    return alltoall_as(&sent, &received, comm, request)


cdef int alltoallw(const void *data, const int *counts, const int *places,
                   const MPI_Datatype *datatypes, void *into, const int *into_counts,
                   const int *into_places, const MPI_Datatype *into_datatypes, MPI_Comm comm,
                   MPI_Request *request) noexcept nogil:
    cdef Elements sent = Elements(<void *>data, 0, counts, 0, datatypes, places, NULL, NULL)
    cdef Elements received = Elements(into, 0, into_counts, 0, into_datatypes, into_places, NULL,
                                      NULL)
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
