"""MPI_Alloc_mem: the rank's part of its node's heap, or the C library's where that is full."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

from shrimpmx.mpi.abi cimport MPI_Aint, MPI_ERR_ARG, MPI_ERR_NO_MEM, MPI_Info, MPI_SUCCESS
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.core cimport EndpointCore


cdef void *memory_take(int64_t bytes) noexcept nogil:
    cdef void *block = NULL
    if (<EndpointCore>world.core).library.heap is not None:
        block = (<EndpointCore>world.core).library.heap.take(max(1, bytes))
    return block if block != NULL else malloc(max(1, bytes))


cdef void memory_give(void *block) noexcept nogil:
    if ((<EndpointCore>world.core).library.heap is not None
            and (<EndpointCore>world.core).library.heap.contains(block, 1)):
        (<EndpointCore>world.core).library.heap.give(<uint8_t *>block)
    else:
        free(block)


cdef int allocate(MPI_Aint size, MPI_Info info, void *place) noexcept nogil:
    cdef void *block
    if size < 0:
        return error_raise(NULL, MPI_ERR_ARG)
    block = memory_take(size)
    if block == NULL:
        return error_raise(NULL, MPI_ERR_NO_MEM)
    (<void **>place)[0] = block
    return MPI_SUCCESS


cdef int give(void *block) noexcept nogil:
    memory_give(block)
    return MPI_SUCCESS


cdef void memory_fill(mpi_table *table) noexcept nogil:
    table.Alloc_mem = allocate
    table.Free_mem = give
