"""The calls that read and write files."""

from shrimpmx.mpi.table cimport mpi_table

cdef void file_calls_fill(mpi_table *table) noexcept nogil
