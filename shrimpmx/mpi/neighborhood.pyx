"""Collectives among the neighbours of a topology (MPI 3.1, 7.6): all messages at once.

A call without a request waits. In a grid what is sent in the negative direction is received from
the positive one, which makes a difference where both neighbours are the same process: there
messages match in the order in which they are sent.
"""

from shrimpmx.mpi.abi cimport (
    MPI_Aint, MPI_Comm, MPI_Datatype, MPI_ERR_COMM, MPI_ERR_TOPOLOGY, MPI_PROC_NULL, MPI_Request,
    MPI_SUCCESS,
)
from shrimpmx.mpi.collective cimport begin, ended, run
from shrimpmx.mpi.communicator cimport Comm, Topology, comm_of
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.parts cimport (
    Elements, Parts, elements_check, elements_of_one, elements_receive, elements_with_counts,
    part_at, part_bytes, parts_to_receive, parts_to_send,
)
from shrimpmx.mpi.schedule cimport Schedule, schedule_receive, schedule_send
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.topology cimport MPI_CART


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


cdef int neighbor_allgather(const void *data, int count, MPI_Datatype datatype, void *into,
                            int into_count, MPI_Datatype into_datatype, MPI_Comm comm,
                            MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_of_one(data, count, datatype)
    cdef Elements received = elements_of_one(into, into_count, into_datatype)
    return exchange(&sent, True, &received, comm, request)


cdef int neighbor_allgatherv(const void *data, int count, MPI_Datatype datatype, void *into,
                             const int *counts, const int *places, MPI_Datatype into_datatype,
                             MPI_Comm comm, MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_of_one(data, count, datatype)
    cdef Elements received = elements_with_counts(into, counts, places, into_datatype)
    return exchange(&sent, True, &received, comm, request)


cdef int neighbor_alltoall(const void *data, int count, MPI_Datatype datatype, void *into,
                           int into_count, MPI_Datatype into_datatype, MPI_Comm comm,
                           MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_of_one(data, count, datatype)
    cdef Elements received = elements_of_one(into, into_count, into_datatype)
    return exchange(&sent, False, &received, comm, request)


cdef int neighbor_alltoallv(const void *data, const int *counts, const int *places,
                            MPI_Datatype datatype, void *into, const int *into_counts,
                            const int *into_places, MPI_Datatype into_datatype, MPI_Comm comm,
                            MPI_Request *request) noexcept nogil:
    cdef Elements sent = elements_with_counts(data, counts, places, datatype)
    cdef Elements received = elements_with_counts(into, into_counts, into_places, into_datatype)
    return exchange(&sent, False, &received, comm, request)


cdef int neighbor_alltoallw(const void *data, const int *counts, const MPI_Aint *places,
                            const MPI_Datatype *datatypes, void *into, const int *into_counts,
                            const MPI_Aint *into_places, const MPI_Datatype *into_datatypes,
                            MPI_Comm comm, MPI_Request *request) noexcept nogil:
    cdef Elements sent = Elements(<void *>data, 0, counts, 0, datatypes, NULL, places, NULL)
    cdef Elements received = Elements(into, 0, into_counts, 0, into_datatypes, NULL, into_places,
                                      NULL)
    return exchange(&sent, False, &received, comm, request)


cdef void neighborhood_fill(mpi_table *table) noexcept nogil:
    table.Ineighbor_allgather = neighbor_allgather
    table.Ineighbor_allgatherv = neighbor_allgatherv
    table.Ineighbor_alltoall = neighbor_alltoall
    table.Ineighbor_alltoallv = neighbor_alltoallv
    table.Ineighbor_alltoallw = neighbor_alltoallw
