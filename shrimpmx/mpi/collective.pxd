"""The calls of collectives."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.table cimport mpi_table

cdef void collective_fill(mpi_table *table) noexcept nogil

# For other calls, without the lock: the class of an error.
cdef int barrier_of_world() noexcept nogil
cdef int broadcast_bytes(Comm *comm, void *data, int64_t length, int root) noexcept nogil
cdef int allgather_bytes(Comm *comm, const void *own, void *into, int64_t length) noexcept nogil
