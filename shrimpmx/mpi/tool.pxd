"""What MPI_T's performance variables say."""

from shrimpmx.mpi.table cimport mpi_table

cdef void tool_fill(mpi_table *table) noexcept nogil
