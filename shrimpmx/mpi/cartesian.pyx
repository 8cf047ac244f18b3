"""Cartesian topologies (MPI 3.1, 7.5.1, 7.5.4 to 7.5.8).

Ranks count through the grid with the last dimension fastest. In each dimension a process has two
neighbours, the one in the negative direction first (7.6).
"""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_DIMS, MPI_ERR_NO_MEM, MPI_ERR_RANK,
    MPI_PROC_NULL, MPI_SUCCESS, MPI_UNDEFINED,
)
from shrimpmx.mpi.comm_create cimport split
from shrimpmx.mpi.communicator cimport Comm, Topology, comm_intra_of, comm_of
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.topology cimport (
    MPI_CART, topology_comm, topology_drop, topology_find, topology_new,
)


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
