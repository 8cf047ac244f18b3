"""Persistent requests."""

from shrimpmx.mpi.table cimport mpi_table

cdef void persistent_fill(mpi_table *table) noexcept nogil
