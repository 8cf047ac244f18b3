"""Dimensions of a grid."""

from shrimpmx.mpi.table cimport mpi_table

cdef void dimensions_fill(mpi_table *table) noexcept nogil
