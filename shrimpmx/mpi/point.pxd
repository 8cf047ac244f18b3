"""Point to point."""

from shrimpmx.mpi.table cimport mpi_table

cdef void point_fill(mpi_table *table) noexcept nogil
