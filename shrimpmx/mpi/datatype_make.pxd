"""The calls that make datatypes: of blocks, and of parts of arrays."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport MPI_Datatype
from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.table cimport mpi_table

# Bounds that do not come from the blocks.
cdef void set_bounds(Datatype *type, int64_t lower, int64_t extent) noexcept nogil
# Finishes a type and gives it to the user; NULL: there was no memory. The result of the call.
cdef int give(Datatype *type, MPI_Datatype *made) noexcept nogil
cdef void datatype_make_fill(mpi_table *table) noexcept nogil


# -- Datatypes that are parts of arrays.

cdef void datatype_array_fill(mpi_table *table) noexcept nogil
cdef void datatype_fortran_fill(mpi_table *table) noexcept nogil
