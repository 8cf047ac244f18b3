"""Distributed graph topologies: each process knows its own neighbours."""

from shrimpmx.mpi.table cimport mpi_table

cdef void dist_graph_fill(mpi_table *table) noexcept nogil
