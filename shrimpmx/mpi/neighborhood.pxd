"""Collectives among the neighbours of a topology."""

from shrimpmx.mpi.table cimport mpi_table

cdef void neighborhood_fill(mpi_table *table) noexcept nogil
