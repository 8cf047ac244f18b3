"""The collective calls that move data."""

from shrimpmx.mpi.table cimport mpi_table

cdef void data_calls_fill(mpi_table *table) noexcept nogil
