"""Graph topologies: every process knows the whole graph."""

from shrimpmx.mpi.table cimport mpi_table

cdef void graph_fill(mpi_table *table) noexcept nogil
