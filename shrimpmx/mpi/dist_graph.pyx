"""Distributed graph topologies (MPI 3.1, 7.5.4 and 7.5.5).

MPI_Dist_graph_create gives every rank all edges, of which it keeps its own: in the order of the
ranks that named them, and of each rank's own list.
"""

from libc.stdint cimport int64_t, intptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_RANK, MPI_Info, MPI_SUCCESS,
)
from shrimpmx.mpi.collective cimport allgather_bytes
from shrimpmx.mpi.communicator cimport Comm, Topology, comm_intra_of
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.topology cimport (
    MPI_DIST_GRAPH, topology_comm, topology_find, topology_new,
)


cdef inline bint unweighted(const int *weights) noexcept nogil:
    """Whether it is MPI_UNWEIGHTED."""
    return weights == <const int *><intptr_t>1


cdef Topology *neighborhood(int indegree, int outdegree, bint weighted) noexcept nogil:
    """A topology whose neighbours are not set yet; NULL: no memory."""
    cdef Topology *topology = topology_new(MPI_DIST_GRAPH, 2 * (indegree + outdegree))
    if topology == NULL:
        return NULL
    topology.indegree = indegree
    topology.outdegree = outdegree
    topology.sources = topology.numbers
    topology.destinations = topology.sources + indegree
    if weighted:
        topology.source_weights = topology.destinations + outdegree
        topology.destination_weights = topology.source_weights + indegree
    return topology


# -- from each rank its own neighbours -------------------------------------------------

cdef int check_side(const Comm *comm, int degree, const int *ranks,
                    const int *weights) noexcept nogil:
    cdef int place
    if degree < 0:
        return MPI_ERR_ARG
    for place in range(degree):
        if not 0 <= ranks[place] < comm.size:
            return MPI_ERR_RANK
        if not unweighted(weights) and weights[place] < 0:
            return MPI_ERR_ARG
    return MPI_SUCCESS


cdef int create_adjacent(MPI_Comm handle, int indegree, const int *sources,
                         const int *source_weights, int outdegree, const int *destinations,
                         const int *destination_weights, MPI_Info info, int reorder,
                         MPI_Comm *made) noexcept nogil:
    """No rank changes: `reorder` only allows it."""
    cdef Comm *comm = comm_intra_of(handle)
    cdef Topology *topology
    cdef bint weighted = not unweighted(source_weights) and not unweighted(destination_weights)
    cdef int code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = check_side(comm, indegree, sources, source_weights)
    if code == MPI_SUCCESS:
        code = check_side(comm, outdegree, destinations, destination_weights)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    topology = neighborhood(indegree, outdegree, weighted)
    if topology != NULL:
        memcpy(topology.sources, sources, indegree * sizeof(int))
        memcpy(topology.destinations, destinations, outdegree * sizeof(int))
    if topology != NULL and weighted:
        memcpy(topology.source_weights, source_weights, indegree * sizeof(int))
        memcpy(topology.destination_weights, destination_weights, outdegree * sizeof(int))
    return topology_comm(comm, comm.size, topology, made)


# -- from any rank any edges -----------------------------------------------------------

cdef struct Edge:
    int source
    int destination
    int weight


cdef struct Edges:           # of all ranks
    int *counts              # [rank]
    int most                 # of `counts`
    Edge *edges              # [rank * most]


cdef int count_edges(const Comm *comm, int n, const int *sources, const int *degrees,
                     const int *destinations, const int *weights, int *count) noexcept nogil:
    cdef int node, code = check_side(comm, n, sources, <const int *><intptr_t>1)
    count[0] = 0
    if code != MPI_SUCCESS:
        return code
    for node in range(n):
        if degrees[node] < 0:
            return MPI_ERR_ARG
        count[0] += degrees[node]
    return check_side(comm, count[0], destinations, weights)


cdef void list_edges(Edge *edges, int n, const int *sources, const int *degrees,
                     const int *destinations, const int *weights) noexcept nogil:
    cdef int node, _turn, place = 0
    for node in range(n):
        for _turn in range(degrees[node]):
            edges[place].source = sources[node]
            edges[place].destination = destinations[place]
            edges[place].weight = 0 if unweighted(weights) else weights[place]
            place += 1


cdef bint gather_edges(Comm *comm, Edges *edges, int count, int n, const int *sources,
                       const int *degrees, const int *destinations,
                       const int *weights) noexcept nogil:
    """Each rank's, in room for the longest list. False: no memory, or a partner does not answer."""
    cdef int rank
    edges.most = 0
    edges.edges = NULL
    edges.counts = <int *>malloc(comm.size * sizeof(int))
    if edges.counts == NULL:
        return False
    if allgather_bytes(comm, &count, edges.counts, sizeof(int)) != MPI_SUCCESS:
        return False
    for rank in range(comm.size):
        edges.most = max(edges.most, edges.counts[rank])
    edges.edges = <Edge *>calloc(max(1, <int64_t>comm.size * edges.most), sizeof(Edge))
    if edges.edges == NULL:
        return False
    list_edges(edges.edges + <int64_t>comm.rank * edges.most, n, sources, degrees, destinations,
               weights)
    return allgather_bytes(comm, NULL, edges.edges,
                           edges.most * <int64_t>sizeof(Edge)) == MPI_SUCCESS


cdef int own_edges(const Comm *comm, const Edges *edges, bint incoming, int *ranks,
                   int *weights) noexcept nogil:
    """How many edges lead to this rank, or away from it. `ranks`, `weights`: their other ends and
    weights go there, unless it is NULL."""
    cdef const Edge *edge
    cdef int rank, place, count = 0
    for rank in range(comm.size):
        for place in range(edges.counts[rank]):
            edge = &edges.edges[<int64_t>rank * edges.most + place]
            if (edge.destination if incoming else edge.source) != comm.rank:
                continue
            if ranks != NULL:
                ranks[count] = edge.source if incoming else edge.destination
            if weights != NULL:
                weights[count] = edge.weight
            count += 1
    return count


cdef int create(MPI_Comm handle, int n, const int *sources, const int *degrees,
                const int *destinations, const int *weights, MPI_Info info, int reorder,
                MPI_Comm *made) noexcept nogil:
    """No rank changes: `reorder` only allows it."""
    cdef Comm *comm = comm_intra_of(handle)
    cdef Topology *topology = NULL
    cdef Edges edges
    cdef int count, code
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    code = count_edges(comm, n, sources, degrees, destinations, weights, &count)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    if gather_edges(comm, &edges, count, n, sources, degrees, destinations, weights):
        topology = neighborhood(own_edges(comm, &edges, True, NULL, NULL),
                                own_edges(comm, &edges, False, NULL, NULL),
                                not unweighted(weights))
    if topology != NULL:
        own_edges(comm, &edges, True, topology.sources, topology.source_weights)
        own_edges(comm, &edges, False, topology.destinations, topology.destination_weights)
    free(edges.counts)
    free(edges.edges)
    return topology_comm(comm, comm.size, topology, made)


# -- queries ---------------------------------------------------------------------------

cdef int neighbors_count(MPI_Comm handle, int *indegree, int *outdegree,
                         int *weighted) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int code = topology_find(handle, MPI_DIST_GRAPH, &comm, &topology)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    indegree[0] = topology.indegree
    outdegree[0] = topology.outdegree
    weighted[0] = topology.source_weights != NULL
    return MPI_SUCCESS


cdef void give(int *into, const int *numbers, int count) noexcept nogil:
    if numbers != NULL and not unweighted(into):
        memcpy(into, numbers, count * sizeof(int))


cdef int neighbors(MPI_Comm handle, int maxindegree, int *sources, int *source_weights,
                   int maxoutdegree, int *destinations, int *destination_weights) noexcept nogil:
    """Of longer lists only the first part."""
    cdef Comm *comm
    cdef Topology *topology
    cdef int incoming, outgoing, code = topology_find(handle, MPI_DIST_GRAPH, &comm, &topology)
    if code == MPI_SUCCESS and (maxindegree < 0 or maxoutdegree < 0):
        code = MPI_ERR_ARG
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    incoming = min(maxindegree, topology.indegree)
    outgoing = min(maxoutdegree, topology.outdegree)
    give(sources, topology.sources, incoming)
    give(source_weights, topology.source_weights, incoming)
    give(destinations, topology.destinations, outgoing)
    give(destination_weights, topology.destination_weights, outgoing)
    return MPI_SUCCESS


cdef void dist_graph_fill(mpi_table *table) noexcept nogil:
    table.Dist_graph_create_adjacent = create_adjacent
    table.Dist_graph_create = create
    table.Dist_graph_neighbors_count = neighbors_count
    table.Dist_graph_neighbors = neighbors
