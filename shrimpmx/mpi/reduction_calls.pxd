"""The collective calls that reduce."""

from shrimpmx.mpi.table cimport mpi_table

cdef void reduction_calls_fill(mpi_table *table) noexcept nogil
