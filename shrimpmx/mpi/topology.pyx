"""Records of topologies, and communicators that have one (MPI 3.1, 7.5).

No call reorders ranks: a process has the same rank in the new communicator as in the old one.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_COMM_NULL, MPI_ERR_COMM, MPI_ERR_NO_MEM, MPI_ERR_TOPOLOGY, MPI_SUCCESS,
    MPI_UNDEFINED,
)
from shrimpmx.mpi.communicator cimport (
    Comm, Topology, agree_on_contexts, comm_make, comm_of, contexts_give,
)
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.error_code cimport DETAIL_COMMS, error_detailed
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.native.atomics cimport fetch_add_u32


cdef Topology *topology_new(int kind, int numbers) noexcept nogil:
    cdef Topology *topology = <Topology *>calloc(1, sizeof(Topology) + numbers * sizeof(int))
    if topology != NULL:
        topology.kind = kind
        topology.uses = 1
        topology.numbers = <int *>(topology + 1)
    return topology


cdef Topology *topology_share(Topology *topology) noexcept nogil:
    if topology != NULL:
        fetch_add_u32(&topology.uses, 1)
    return topology


cdef void topology_drop(Topology *topology) noexcept nogil:
    if topology != NULL and fetch_add_u32(&topology.uses, <uint32_t>-1) == 1:
        free(topology)


cdef int topology_find(MPI_Comm handle, int kind, Comm **comm, Topology **topology) noexcept nogil:
    comm[0] = comm_of(handle)
    if comm[0] == NULL:
        return MPI_ERR_COMM
    topology[0] = comm[0].topology
    if topology[0] == NULL or topology[0].kind != kind:
        return MPI_ERR_TOPOLOGY
    return MPI_SUCCESS


cdef int topology_comm(Comm *parent, int size, Topology *topology,
                       MPI_Comm *made) noexcept nogil:
    cdef uint32_t context = agree_on_contexts(parent)
    cdef Comm *comm = NULL
    made[0] = MPI_COMM_NULL
    if parent.rank < size and topology != NULL:
        comm = comm_make(parent, context, parent.ranks, size)
    else:
        contexts_give(context)
    if comm == NULL:
        topology_drop(topology)
        return MPI_SUCCESS if parent.rank >= size else error_raise(
            parent, error_detailed(MPI_ERR_NO_MEM, DETAIL_COMMS))
    comm.topology = topology
    made[0] = comm.handle
    return MPI_SUCCESS


cdef int topo_test(MPI_Comm handle, int *kind) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    kind[0] = MPI_UNDEFINED if comm.topology == NULL else comm.topology.kind
    return MPI_SUCCESS


cdef void topology_fill(mpi_table *table) noexcept nogil:
    table.Topo_test = topo_test
