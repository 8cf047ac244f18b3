"""Collective calls: what all of them share, and the barrier."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport (
    MPI_ERR_ROOT, MPI_Request, MPI_SUCCESS,
)
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.error cimport ended
from shrimpmx.mpi.schedule cimport Schedule
from shrimpmx.mpi.table cimport mpi_table

cdef void collective_fill(mpi_table *table) noexcept nogil

# A schedule to fill, under the lock, which run() gives back; NULL: no memory, and no lock.
cdef Schedule *begin(Comm *comm) noexcept nogil
# Starts a schedule; waits for it if `handle` is NULL. The class of an error.
cdef int run(Comm *comm, Schedule *schedule, MPI_Request *handle) noexcept nogil

# For other calls, without the lock: the class of an error.
cdef int barrier_of_world() noexcept nogil
cdef int broadcast_bytes(Comm *comm, void *data, int64_t length, int root) noexcept nogil
cdef int allgather_bytes(Comm *comm, const void *own, void *into, int64_t length) noexcept nogil


cdef inline int check_root(const Comm *comm, int root) noexcept nogil:
    return MPI_SUCCESS if 0 <= root < comm.size else MPI_ERR_ROOT
