"""What a datatype is made of, its sizes, and how many elements a message has."""

from shrimpmx.mpi.table cimport mpi_table

cdef void datatype_query_fill(mpi_table *table) noexcept nogil
