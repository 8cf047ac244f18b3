"""What the end of a message means to a program: the code of an error."""

from shrimpmx.mpi.abi cimport MPI_ERR_NO_MEM, MPI_ERR_OTHER, MPI_ERR_TRUNCATE, MPI_SUCCESS
from shrimpmx.mpi.error_code cimport CODE_UNREADABLE, CODE_UNWRITABLE, CODE_WITHDRAWN
from shrimpmx.mx.types cimport (
    REQUEST_SEND, STATUS_BAD_BUFFER, STATUS_BAD_RDMA_WINDOW, STATUS_NO_RESOURCES, STATUS_SUCCESS,
    STATUS_TRUNCATED,
)


cdef int error_of(const MxRequest *message) noexcept nogil:
    cdef bint is_send = message.kind == REQUEST_SEND
    if message.status == STATUS_SUCCESS:
        return MPI_SUCCESS
    if message.status == STATUS_TRUNCATED:
        return MPI_ERR_TRUNCATE
    if message.status == STATUS_NO_RESOURCES:
        return MPI_ERR_NO_MEM
    if message.status == STATUS_BAD_RDMA_WINDOW:
        return CODE_WITHDRAWN
    if message.status != STATUS_BAD_BUFFER:
        return MPI_ERR_OTHER
    bad_buffer.data = message.data
    bad_buffer.length = message.length if is_send else min(message.length, message.capacity)
    return CODE_UNREADABLE if is_send else CODE_UNWRITABLE
