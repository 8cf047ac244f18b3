"""Queries about communicators."""

from shrimpmx.mpi.table cimport mpi_table

cdef void comm_query_fill(mpi_table *table) noexcept nogil
