"""The calls that test requests and wait for them."""

from shrimpmx.mpi.table cimport mpi_table

cdef void completion_fill(mpi_table *table) noexcept nogil
