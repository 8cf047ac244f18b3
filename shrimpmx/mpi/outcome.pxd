"""What the end of a message means to a program: the class of an error."""

from libc.stdint cimport uint32_t

from shrimpmx.mpi.abi cimport MPI_ERR_NO_MEM, MPI_ERR_OTHER, MPI_ERR_TRUNCATE, MPI_SUCCESS
from shrimpmx.mx.types cimport STATUS_NO_RESOURCES, STATUS_SUCCESS, STATUS_TRUNCATED


cdef inline int error_class_of(uint32_t status) noexcept nogil:
    """Of the status that MX gives a message."""
    if status == STATUS_SUCCESS:
        return MPI_SUCCESS
    if status == STATUS_TRUNCATED:
        return MPI_ERR_TRUNCATE
    return MPI_ERR_NO_MEM if status == STATUS_NO_RESOURCES else MPI_ERR_OTHER
