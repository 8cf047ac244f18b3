"""Operations of reductions."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport MPI_Datatype, MPI_Op
from shrimpmx.mpi.table cimport mpi_table

# Whether there is such an operation on elements of that datatype: MPI_SUCCESS, or the class of the
# error.
cdef int operation_check(MPI_Op operation, MPI_Datatype datatype, int64_t count) noexcept nogil
# A schedule uses it, or no longer does. Under the lock.
cdef void operation_keep(MPI_Op operation) noexcept nogil
cdef void operation_drop(MPI_Op operation) noexcept nogil
cdef bint operation_commutes(MPI_Op operation) noexcept nogil
# Whether it calls a function of the user's, which must not be done under the lock.
cdef bint operation_is_foreign(MPI_Op operation) noexcept nogil
# into[i] = data[i] op into[i]. MPI_NO_OP leaves `into`, MPI_REPLACE copies.
cdef void operation_apply(MPI_Op operation, const void *data, void *into, int64_t count,
                          MPI_Datatype datatype) noexcept nogil
cdef void operation_fill(mpi_table *table) noexcept nogil
