"""Topologies (MPI 3.1, 7.5): their records, and the calls for grids, graphs, distributed graphs.

No call reorders ranks: a process has the same rank in the new communicator as in the old one.
"""

from libc.stdint cimport int64_t, intptr_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from shrimpmx.mpi.abi cimport (
    MPI_COMM_NULL, MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_DIMS, MPI_ERR_NO_MEM, MPI_ERR_RANK,
    MPI_ERR_TOPOLOGY, MPI_PROC_NULL, MPI_SUCCESS, MPI_UNDEFINED, MPI_Comm, MPI_Info,
)
from shrimpmx.mpi.collective_calls cimport allgather_bytes
from shrimpmx.mpi.comm_create cimport split
from shrimpmx.mpi.communicator cimport (
    Comm, Topology, agree_on_contexts, comm_intra_of, comm_make, comm_of, contexts_give,
)
from shrimpmx.mpi.error cimport DETAIL_COMMS, error_detailed, error_raise
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.native.atomics cimport fetch_add_u32
from shrimpmx.native.copy cimport copy_bytes


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
    if context != 0 and parent.rank < size and topology != NULL:
        comm = comm_make(parent, context, parent.ranks, size)
    else:
        contexts_give(context)
    if comm == NULL:
        topology_drop(topology)
        return MPI_SUCCESS if context != 0 and parent.rank >= size else error_raise(
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


# -- MPI_Dims_create: a balanced grid for a number of processes (MPI 3.1, 7.5.2).
#
# Its largest and its smallest dimension are as close as they can be; of such grids the smallest is
# as large as it can be, then the largest as small, the next one, and so on.

cdef enum:
    # No number below 2**31 has more.
    DIVISORS_MAX = 1600
    # Nor has it so many factors above 1.
    FACTORS_MAX = 31


cdef struct Divisors:        # of a number, in their order
    int count
    int[DIVISORS_MAX] values


cdef void divisors_find(Divisors *divisors, int number) noexcept nogil:
    cdef int64_t low = 1
    cdef int index, pairs
    divisors.count = 0
    while low * low <= number:
        if number % low == 0:
            divisors.values[divisors.count] = <int>low
            divisors.count += 1
        low += 1
    pairs = divisors.count
    for index in range(pairs - 1, -1, -1):
        low = divisors.values[index]
        if low * low != number:
            divisors.values[divisors.count] = <int>(number // low)
            divisors.count += 1


cdef bint reaches(int factor, int number, int count) noexcept nogil:
    """Whether a product of `count` such factors is at least `number`."""
    cdef int64_t product = 1
    cdef int _turn
    for _turn in range(count):
        if product >= number:
            return True
        product *= factor
    return product >= number


cdef bint factorize(const Divisors *divisors, int number, int count, int least, int largest,
                    int *factors) noexcept nogil:
    """The least product of `count` factors from `least` to `largest`, none above the one before it;
    False: there is none."""
    cdef int index, factor
    if count == 0:
        return number == 1
    for index in range(divisors.count):
        factor = divisors.values[index]
        if factor > largest:
            return False
        if factor >= least and number % factor == 0 and reaches(factor, number, count):
            factors[0] = factor
            if factorize(divisors, number // factor, count - 1, least, factor, factors + 1):
                return True
    return False


cdef void balance(const Divisors *divisors, int number, int count, int *factors) noexcept nogil:
    """From the grid with the least largest factor on, looks for those with larger smallest ones."""
    cdef int[FACTORS_MAX] others
    cdef int index, smallest
    cdef int last = count - 1
    factorize(divisors, number, count, 1, number, factors)
    for index in range(divisors.count):
        smallest = divisors.values[index]
        if smallest <= factors[last]:
            continue
        if smallest > factors[0]:
            return
        if factorize(divisors, number // smallest, last, smallest,
                     smallest + factors[0] - factors[last], others):
            copy_bytes(factors, others, last * sizeof(int))
            factors[last] = smallest


cdef int dims_create(int nnodes, int ndims, int *dims) noexcept nogil:
    """Sets the dimensions that are 0, to values that do not grow."""
    cdef Divisors divisors
    cdef int[FACTORS_MAX] factors
    cdef int dimension, unset = 0, place = 0
    cdef int64_t number = nnodes
    if nnodes <= 0:
        return error_raise(NULL, MPI_ERR_ARG)
    for dimension in range(ndims):
        if dims[dimension] < 0 or (dims[dimension] > 0 and number % dims[dimension] != 0):
            return error_raise(NULL, MPI_ERR_DIMS)
        if dims[dimension] == 0:
            unset += 1
        else:
            number //= dims[dimension]
    if ndims < 0:
        return error_raise(NULL, MPI_ERR_DIMS)
    if unset == 0:
        return MPI_SUCCESS
    divisors_find(&divisors, <int>number)
    balance(&divisors, <int>number, min(unset, FACTORS_MAX), factors)
    for dimension in range(ndims):
        if dims[dimension] == 0:
            dims[dimension] = factors[place] if place < FACTORS_MAX else 1
            place += 1
    return MPI_SUCCESS


cdef void dimensions_fill(mpi_table *table) noexcept nogil:
    table.Dims_create = dims_create


# -- Cartesian topologies (MPI 3.1, 7.5.1, 7.5.4 to 7.5.8).
#
# Ranks count through the grid with the last dimension fastest. In each dimension a process has two
# neighbours, the one in the negative direction first (7.6).

cdef int processes_of(int ndims, const int *dims) noexcept nogil:
    """How many processes a grid has; -1 if it is none, or has too many for an int."""
    cdef int64_t count = 1
    cdef int dimension
    for dimension in range(ndims):
        if dims[dimension] <= 0:
            return -1
        count *= dims[dimension]
        if count > 0x7FFFFFFF:
            return -1
    return <int>count if ndims >= 0 else -1


cdef Topology *grid(int ndims, const int *dims, const int *periods, const int *remain,
                    int rank) noexcept nogil:
    """The topology, as it is to that rank; NULL: no memory. `remain`: which dimensions it has, or
    NULL for all."""
    cdef Topology *topology = topology_new(MPI_CART, 5 * ndims)
    cdef int dimension, stride = 1
    if topology == NULL:
        return NULL
    topology.dims = topology.numbers
    topology.periods = topology.dims + ndims
    topology.strides = topology.periods + ndims
    topology.sources = topology.strides + ndims
    topology.destinations = topology.sources
    for dimension in range(ndims):
        if remain == NULL or remain[dimension]:
            topology.dims[topology.ndims] = dims[dimension]
            topology.periods[topology.ndims] = periods[dimension] != 0
            topology.ndims += 1
    topology.indegree = 2 * topology.ndims
    topology.outdegree = 2 * topology.ndims
    for dimension in range(topology.ndims - 1, -1, -1):
        topology.strides[dimension] = stride
        stride *= topology.dims[dimension]
    for dimension in range(topology.ndims):
        topology.sources[2 * dimension] = shifted(topology, rank, dimension, -1)
        topology.sources[2 * dimension + 1] = shifted(topology, rank, dimension, 1)
    return topology


cdef int coordinate_of(const Topology *topology, int rank, int dimension) noexcept nogil:
    return rank // topology.strides[dimension] % topology.dims[dimension]


cdef int64_t wrapped(const Topology *topology, int dimension, int64_t coordinate) noexcept nogil:
    """A coordinate in the grid; MPI_PROC_NULL: it is beyond an edge."""
    cdef int size = topology.dims[dimension]
    if topology.periods[dimension]:
        return (coordinate % size + size) % size
    return coordinate if 0 <= coordinate < size else MPI_PROC_NULL


cdef int shifted(const Topology *topology, int rank, int dimension, int64_t by) noexcept nogil:
    """The rank so many steps away, or MPI_PROC_NULL."""
    cdef int own = coordinate_of(topology, rank, dimension)
    cdef int64_t other = wrapped(topology, dimension, own + by)
    if other == MPI_PROC_NULL:
        return MPI_PROC_NULL
    return rank + <int>(other - own) * topology.strides[dimension]


# -- new communicators -----------------------------------------------------------------

cdef int cart_create(MPI_Comm handle, int ndims, const int *dims, const int *periods, int reorder,
                     MPI_Comm *made) noexcept nogil:
    """Ranks beyond the grid get MPI_COMM_NULL. No rank changes: `reorder` only allows it."""
    cdef Comm *comm = comm_intra_of(handle)
    cdef int size = processes_of(ndims, dims)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if not 0 < size <= comm.size:
        return error_raise(comm, MPI_ERR_DIMS)
    return topology_comm(comm, size,
                         grid(ndims, dims, periods, NULL, min(comm.rank, size - 1)), made)


cdef int cart_map(MPI_Comm handle, int ndims, const int *dims, const int *periods,
                  int *rank) noexcept nogil:
    cdef Comm *comm = comm_intra_of(handle)
    cdef int size = processes_of(ndims, dims)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if not 0 < size <= comm.size:
        return error_raise(comm, MPI_ERR_DIMS)
    rank[0] = comm.rank if comm.rank < size else MPI_UNDEFINED
    return MPI_SUCCESS


cdef int cart_sub(MPI_Comm handle, const int *remain, MPI_Comm *made) noexcept nogil:
    """Of the processes whose coordinates in the dimensions that go are the same."""
    cdef Comm *comm
    cdef Topology *whole
    cdef Topology *part
    cdef int color = 0, key = 0, dimension, own
    cdef int code = topology_find(handle, MPI_CART, &comm, &whole)
    if code == MPI_SUCCESS and remain == NULL and whole.ndims > 0:
        code = MPI_ERR_ARG
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    for dimension in range(whole.ndims):
        own = coordinate_of(whole, comm.rank, dimension)
        if remain[dimension]:
            key = key * whole.dims[dimension] + own
        else:
            color = color * whole.dims[dimension] + own
    part = grid(whole.ndims, whole.dims, whole.periods, remain, key)
    if part == NULL:
        return error_raise(comm, MPI_ERR_NO_MEM)
    code = split(handle, color, key, made)
    if code == MPI_SUCCESS:
        comm_of(made[0]).topology = part
    else:
        topology_drop(part)
    return code


# -- queries ---------------------------------------------------------------------------

cdef int cartdim_get(MPI_Comm handle, int *ndims) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int code = topology_find(handle, MPI_CART, &comm, &topology)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    ndims[0] = topology.ndims
    return MPI_SUCCESS


cdef int cart_get(MPI_Comm handle, int maxdims, int *dims, int *periods,
                  int *coords) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int dimension, code = topology_find(handle, MPI_CART, &comm, &topology)
    if code == MPI_SUCCESS and maxdims < topology.ndims:
        code = MPI_ERR_ARG
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    for dimension in range(topology.ndims):
        dims[dimension] = topology.dims[dimension]
        periods[dimension] = topology.periods[dimension]
        coords[dimension] = coordinate_of(topology, comm.rank, dimension)
    return MPI_SUCCESS


cdef int cart_rank(MPI_Comm handle, const int *coords, int *rank) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int64_t coordinate, found = 0
    cdef int dimension, code = topology_find(handle, MPI_CART, &comm, &topology)
    if code == MPI_SUCCESS and coords == NULL and topology.ndims > 0:
        code = MPI_ERR_ARG
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    for dimension in range(topology.ndims):
        coordinate = wrapped(topology, dimension, coords[dimension])
        if coordinate == MPI_PROC_NULL:
            return error_raise(comm, MPI_ERR_ARG)
        found = found * topology.dims[dimension] + coordinate
    rank[0] = <int>found
    return MPI_SUCCESS


cdef int cart_coords(MPI_Comm handle, int rank, int maxdims, int *coords) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int dimension, code = topology_find(handle, MPI_CART, &comm, &topology)
    if code == MPI_SUCCESS and not 0 <= rank < comm.size:
        code = MPI_ERR_RANK
    elif code == MPI_SUCCESS and maxdims < topology.ndims:
        code = MPI_ERR_ARG
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    for dimension in range(topology.ndims):
        coords[dimension] = coordinate_of(topology, rank, dimension)
    return MPI_SUCCESS


cdef int cart_shift(MPI_Comm handle, int direction, int displacement, int *source,
                    int *destination) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int code = topology_find(handle, MPI_CART, &comm, &topology)
    if code == MPI_SUCCESS and not 0 <= direction < topology.ndims:
        code = MPI_ERR_DIMS
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    source[0] = shifted(topology, comm.rank, direction, -<int64_t>displacement)
    destination[0] = shifted(topology, comm.rank, direction, displacement)
    return MPI_SUCCESS


cdef void cartesian_fill(mpi_table *table) noexcept nogil:
    table.Cart_create = cart_create
    table.Cart_map = cart_map
    table.Cart_sub = cart_sub
    table.Cartdim_get = cartdim_get
    table.Cart_get = cart_get
    table.Cart_rank = cart_rank
    table.Cart_coords = cart_coords
    table.Cart_shift = cart_shift


# -- Graph topologies (MPI 3.1, 7.5.3, 7.5.5 and 7.5.8).
#
# The neighbours of a node stand in `edges`, up to the place that `index` has for it.

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
    copy_bytes(topology.index, index, nnodes * sizeof(int))
    copy_bytes(topology.edges, edges, count * sizeof(int))
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
    copy_bytes(index, topology.index, topology.nnodes * sizeof(int))
    copy_bytes(edges, topology.edges, count * sizeof(int))
    return MPI_SUCCESS


cdef int find_node(MPI_Comm handle, int node, Comm **comm, Topology **topology) noexcept nogil:
    cdef int code = topology_find(handle, MPI_GRAPH, comm, topology)
    if code == MPI_SUCCESS and not 0 <= node < topology[0].nnodes:
        code = MPI_ERR_RANK
    return code


cdef int graph_neighbors_count(MPI_Comm handle, int node, int *count) noexcept nogil:
    cdef Comm *comm
    cdef Topology *topology
    cdef int code = find_node(handle, node, &comm, &topology)
    if code != MPI_SUCCESS:
        return error_raise(comm, code)
    count[0] = topology.index[node] - first_edge(topology.index, node)
    return MPI_SUCCESS


cdef int graph_neighbors(MPI_Comm handle, int node, int maxneighbors, int *found) noexcept nogil:
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
    copy_bytes(found, topology.edges + first, count * sizeof(int))
    return MPI_SUCCESS


cdef void graph_fill(mpi_table *table) noexcept nogil:
    table.Graph_create = graph_create
    table.Graph_map = graph_map
    table.Graphdims_get = graphdims_get
    table.Graph_get = graph_get
    table.Graph_neighbors_count = graph_neighbors_count
    table.Graph_neighbors = graph_neighbors


# -- Distributed graph topologies (MPI 3.1, 7.5.4 and 7.5.5).
#
# MPI_Dist_graph_create gives every rank all edges, of which it keeps its own: in the order of the
# ranks that named them, and of each rank's own list.

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
        copy_bytes(topology.sources, sources, indegree * sizeof(int))
        copy_bytes(topology.destinations, destinations, outdegree * sizeof(int))
    if topology != NULL and weighted:
        copy_bytes(topology.source_weights, source_weights, indegree * sizeof(int))
        copy_bytes(topology.destination_weights, destination_weights, outdegree * sizeof(int))
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

cdef int dist_graph_neighbors_count(MPI_Comm handle, int *indegree, int *outdegree,
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
        copy_bytes(into, numbers, count * sizeof(int))


cdef int dist_graph_neighbors(MPI_Comm handle, int maxindegree, int *sources, int *source_weights,
                              int maxoutdegree, int *destinations,
                              int *destination_weights) noexcept nogil:
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
    table.Dist_graph_neighbors_count = dist_graph_neighbors_count
    table.Dist_graph_neighbors = dist_graph_neighbors
