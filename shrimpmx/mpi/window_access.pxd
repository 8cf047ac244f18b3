"""Accesses to windows: put, get, accumulate and the like."""

from shrimpmx.mpi.table cimport mpi_table

cdef void window_access_fill(mpi_table *table) noexcept nogil
