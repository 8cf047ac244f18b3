"""Info objects: texts by key."""

from shrimpmx.mpi.table cimport mpi_table

cdef void info_fill(mpi_table *table) noexcept nogil
