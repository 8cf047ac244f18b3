"""Virtual topologies (MPI 3.1, chapter 7): their records, and the calls of each kind."""

from shrimpmx.mpi.abi cimport MPI_Comm
from shrimpmx.mpi.communicator cimport Comm, Topology
from shrimpmx.mpi.table cimport mpi_table

# Kinds, as MPI_Topo_test tells them.
cdef enum:
    MPI_GRAPH = 1
    MPI_CART = 2
    MPI_DIST_GRAPH = 3

# A record with so many `numbers` for its arrays, all of it 0; NULL: no memory.
cdef Topology *topology_new(int kind, int numbers) noexcept nogil
# The communicator of a handle and its topology of that kind: MPI_SUCCESS or the class of an error.
cdef int topology_find(MPI_Comm handle, int kind, Comm **comm, Topology **topology) noexcept nogil
# Another communicator has it; it may be NULL.
cdef Topology *topology_share(Topology *topology) noexcept nogil
# A communicator no longer has it; it may be NULL.
cdef void topology_drop(Topology *topology) noexcept nogil
# Collective: a communicator of the first `size` ranks of `parent` that has the topology (NULL: no
# memory). The other ranks get MPI_COMM_NULL. What the call returns.
cdef int topology_comm(Comm *parent, int size, Topology *topology, MPI_Comm *made) noexcept nogil
cdef void topology_fill(mpi_table *table) noexcept nogil


# -- Dimensions of a grid.

cdef void dimensions_fill(mpi_table *table) noexcept nogil


# -- Cartesian topologies: grids of processes.

cdef void cartesian_fill(mpi_table *table) noexcept nogil


# -- Graph topologies: every process knows the whole graph.

cdef void graph_fill(mpi_table *table) noexcept nogil


# -- Distributed graph topologies: each process knows its own neighbours.

cdef void dist_graph_fill(mpi_table *table) noexcept nogil
