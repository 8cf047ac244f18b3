"""Attributes that programs attach to communicators."""

from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.table cimport mpi_table

# All without the lock, since they call the user's functions: the class of an error.
cdef int attributes_copy(Comm *source, Comm *target) noexcept nogil
cdef int attributes_delete(Comm *comm) noexcept nogil
cdef void attribute_fill(mpi_table *table) noexcept nogil
