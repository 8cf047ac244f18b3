"""Buffered sends."""

from shrimpmx.mpi.point cimport Envelope
from shrimpmx.mpi.table cimport mpi_table

# A buffered send, under the lock: the class of an error.
cdef int buffered_start(const Envelope *envelope, const void *data, int target) noexcept nogil

cdef void buffered_fill(mpi_table *table) noexcept nogil
