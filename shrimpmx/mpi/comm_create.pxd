"""New communicators from those that are there."""

from shrimpmx.mpi.abi cimport MPI_Comm
from shrimpmx.mpi.table cimport mpi_table

# MPI_Comm_split.
cdef int split(MPI_Comm handle, int color, int key, MPI_Comm *made) noexcept nogil
cdef void comm_create_fill(mpi_table *table) noexcept nogil
