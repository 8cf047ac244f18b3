"""Cartesian topologies: grids of processes."""

from shrimpmx.mpi.table cimport mpi_table

cdef void cartesian_fill(mpi_table *table) noexcept nogil
