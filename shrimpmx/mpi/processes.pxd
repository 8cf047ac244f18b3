"""Processes that come later: spawned ones, and those that meet at a port (MPI 4.1, chapter 11)."""

from shrimpmx.mpi.table cimport mpi_table

# -- Spawning, ports and MPI_Comm_join.

# At the end of MPI_Init: a rank that was spawned gets an inter-communicator with those that have
# done so.
cdef int processes_start(object joined) except -1
cdef void processes_fill(mpi_table *table) noexcept nogil

# -- Names of services.

cdef void names_fill(mpi_table *table) noexcept nogil
