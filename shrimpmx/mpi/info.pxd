"""Info objects: texts by key."""

from shrimpmx.mpi.abi cimport MPI_Info
from shrimpmx.mpi.table cimport mpi_table

# Whether it is an info object, or none.
cdef bint info_is(MPI_Info handle) noexcept nogil
# The value of a key; NULL: there is none.
cdef const char *info_text(MPI_Info handle, const char *key) noexcept nogil
# Sets a key: the class of an error, which was raised.
cdef int info_set(MPI_Info handle, const char *key, const char *value) noexcept nogil
# A new one; the class of an error, which was raised.
cdef int info_make(MPI_Info *made) noexcept nogil
cdef void info_fill(mpi_table *table) noexcept nogil
