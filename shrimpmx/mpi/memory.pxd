"""Memory that handlers write into directly."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.table cimport mpi_table

# A block of the rank's heap, or of the C library's where that is full; NULL: of neither.
cdef void *memory_take(int64_t bytes) noexcept nogil
cdef void memory_give(void *block) noexcept nogil
cdef void memory_fill(mpi_table *table) noexcept nogil
