"""Datatypes that are parts of arrays."""

from shrimpmx.mpi.table cimport mpi_table

cdef void datatype_array_fill(mpi_table *table) noexcept nogil
