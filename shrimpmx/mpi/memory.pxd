"""Memory that handlers write into directly."""

from shrimpmx.mpi.table cimport mpi_table

cdef void memory_fill(mpi_table *table) noexcept nogil
