"""MPI_Alloc_mem: the rank's part of its node's heap, or the C library's where that is full."""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc

from shrimpmx.mpi.abi cimport MPI_Aint, MPI_ERR_ARG, MPI_ERR_NO_MEM, MPI_Info, MPI_SUCCESS
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.core cimport EndpointCore


cdef int allocate(MPI_Aint size, MPI_Info info, void *place) noexcept nogil:
    cdef void *block = NULL
    if size < 0:
        return error_raise(NULL, MPI_ERR_ARG)
    if (<EndpointCore>world.core).library.heap is not None:
        block = (<EndpointCore>world.core).library.heap.take(max(1, size))
    if block == NULL:
        block = malloc(max(1, size))
    if block == NULL:
        return error_raise(NULL, MPI_ERR_NO_MEM)
    (<void **>place)[0] = block
    return MPI_SUCCESS


cdef int give(void *block) noexcept nogil:
    if ((<EndpointCore>world.core).library.heap is not None
            and (<EndpointCore>world.core).library.heap.contains(block, 1)):
        (<EndpointCore>world.core).library.heap.give(<uint8_t *>block)
    else:
        free(block)
    return MPI_SUCCESS


cdef void memory_fill(mpi_table *table) noexcept nogil:
    table.Alloc_mem = allocate
    table.Free_mem = give
