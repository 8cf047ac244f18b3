"""Graph topologies (MPI 3.1, 7.5.3, 7.5.5 and 7.5.8).

The neighbours of a node stand in `edges`, up to the place that `index` has for it.
"""

from libc.string cimport memcpy

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_RANK, MPI_SUCCESS, MPI_UNDEFINED,
)
from shrimpmx.mpi.communicator cimport Comm, Topology, comm_intra_of
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.topology cimport MPI_GRAPH, topology_comm, topology_find, topology_new


cdef inline int first_edge(const int *index, int node) noexcept nogil:
    """Where its neighbours begin in `edges`."""
    return index[node - 1] if node > 0 else 0


cdef int check_graph(const Comm *comm, int nnodes, const int *index,
                     const int *edges) noexcept nogil:
    cdef int node, edge
    if not 0 <= nnodes <= comm.size:
        return MPI_ERR_ARG
    for node in range(nnodes):
        if index[node] < first_edge(index, node):
            return MPI_ERR_ARG
    for edge in range(first_edge(index, nnodes)):
        if not 0 <= edges[edge] < nnodes:
            return MPI_ERR_RANK
    return MPI_SUCCESS


cdef Topology *graph(int nnodes, const int *index, const int *edges, int rank) noexcept nogil:
    """The topology, as it is to that rank; NULL: no memory."""
    cdef int count = first_edge(index, nnodes)
    cdef Topology *topology = topology_new(MPI_GRAPH, nnodes + count)
    if topology == NULL:
        return NULL
    topology.nnodes = nnodes
    topology.index = topology.numbers
    topology.edges = topology.index + nnodes
    memcpy(topology.index, index, nnodes * sizeof(int))
    memcpy(topology.edges, edges, count * sizeof(int))
    if rank < nnodes:
        topology.sources = topology.edges + first_edge(index, rank)
        topology.indegree = index[rank] - first_edge(index, rank)
    topology.destinations = topology.sources
    topology.outdegree = topology.indegree
    return topology


cdef int graph_create(MPI_Comm handle, int nnodes, const int *index, const int *edges,
                      int reorder, MPI_Comm *made) noexcept nogil:
    """Ranks beyond the nodes get MPI_COMM_NULL. No rank changes: `reorder` only allows it."""
    cdef Comm *comm = comm_intra_of(handle)
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = check_graph(comm, nnodes, index, edges)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    return topology_comm(comm, nnodes, graph(nnodes, index, edges, comm.rank), made)


cdef int graph_map(MPI_Comm handle, int nnodes, const int *index, const int *edges,
                   int *rank) noexcept nogil:
    cdef Comm *comm = comm_intra_of(handle)
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = check_graph(comm, nnodes, index, edges)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    rank[0] = comm.rank if comm.rank < nnodes else MPI_UNDEFINED
    return MPI_SUCCESS


# -- queries ---------------------------------------------------------------------------

cdef int graphdims_get(MPI_Comm handle, int *nnodes, int *nedges) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int code = topology_find(handle, MPI_GRAPH, &comm, &topology)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    nnodes[0] = topology.nnodes
    nedges[0] = first_edge(topology.index, topology.nnodes)
    return MPI_SUCCESS


cdef int graph_get(MPI_Comm handle, int maxindex, int maxedges, int *index,
                   int *edges) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int count = 0, code = topology_find(handle, MPI_GRAPH, &comm, &topology)
    if code == MPI_SUCCESS:
        count = first_edge(topology.index, topology.nnodes)
        if maxindex < topology.nnodes or maxedges < count:
            code = MPI_ERR_ARG
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    memcpy(index, topology.index, topology.nnodes * sizeof(int))
    memcpy(edges, topology.edges, count * sizeof(int))
    return MPI_SUCCESS


cdef int find_node(MPI_Comm handle, int node, Comm **comm, Topology **topology) noexcept nogil:
    cdef int code = topology_find(handle, MPI_GRAPH, comm, topology)
    if code == MPI_SUCCESS and not 0 <= node < topology[0].nnodes:
        code = MPI_ERR_RANK
    return code


cdef int neighbors_count(MPI_Comm handle, int node, int *count) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int code = find_node(handle, node, &comm, &topology)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    count[0] = topology.index[node] - first_edge(topology.index, node)
    return MPI_SUCCESS


cdef int neighbors(MPI_Comm handle, int node, int maxneighbors, int *found) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int first = 0, count = 0, code = find_node(handle, node, &comm, &topology)
    if code == MPI_SUCCESS:
        first = first_edge(topology.index, node)
        count = topology.index[node] - first
        if maxneighbors < count:
            code = MPI_ERR_ARG
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    memcpy(found, topology.edges + first, count * sizeof(int))
    return MPI_SUCCESS


cdef void graph_fill(mpi_table *table) noexcept nogil:
    table.Graph_create = graph_create
    table.Graph_map = graph_map
    table.Graphdims_get = graphdims_get
    table.Graph_get = graph_get
    table.Graph_neighbors_count = neighbors_count
    table.Graph_neighbors = neighbors
