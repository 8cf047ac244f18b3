"""The calls of collectives: they check arguments and start schedules."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport MPI_ERR_ROOT, MPI_PROC_NULL, MPI_ROOT, MPI_SUCCESS, MPI_Request
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.error cimport ended
from shrimpmx.mpi.schedule cimport Schedule
from shrimpmx.mpi.table cimport mpi_table

# -- Collective calls: what all of them share, and the barrier.

cdef void collective_fill(mpi_table *table) noexcept nogil

# A schedule to fill, under the lock, which run() gives back; NULL: no memory, and no lock.
cdef Schedule *begin(Comm *comm) noexcept nogil
# Starts a schedule, or describes it; waits for it if `handle` is NULL. The class of an error.
cdef int run(Comm *comm, Schedule *schedule, MPI_Request *handle) noexcept nogil

# For other calls, without the lock: the class of an error.
cdef int barrier_of_world() noexcept nogil
cdef int barrier_on(Comm *comm) noexcept nogil
cdef int broadcast_bytes(Comm *comm, void *data, int64_t length, int root) noexcept nogil
cdef int allgather_bytes(Comm *comm, const void *own, void *into, int64_t length) noexcept nogil


cdef inline int check_root(const Comm *comm, int root) noexcept nogil:
    """Of an inter-communicator the root's group says MPI_ROOT, or nobody (MPI 3.1, 5.2.3)."""
    if comm.remote != NULL and root in (MPI_ROOT, MPI_PROC_NULL):
        return MPI_SUCCESS
    return MPI_SUCCESS if 0 <= root < comm.peers else MPI_ERR_ROOT


cdef inline bint is_root(const Comm *comm, int root) noexcept nogil:
    return comm.rank == root if comm.remote == NULL else root == MPI_ROOT


cdef inline bint is_beside_root(const Comm *comm, int root) noexcept nogil:
    """It takes no part, but counts the collective."""
    return comm.remote != NULL and root == MPI_PROC_NULL


# -- The collective calls that move data.

cdef void data_calls_fill(mpi_table *table) noexcept nogil


# -- The collective calls that reduce.

cdef void reduction_calls_fill(mpi_table *table) noexcept nogil


# -- Collectives among the neighbours of a topology.

cdef void neighborhood_fill(mpi_table *table) noexcept nogil
