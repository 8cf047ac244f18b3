"""What the end of a message means to a program: the code of an error."""

from libc.stdint cimport uint64_t

from shrimpmx.mpi.abi cimport (
    MPI_ERR_BUFFER, MPI_ERR_NO_MEM, MPI_ERR_OTHER, MPI_ERR_TRUNCATE, MPI_SUCCESS,
)
from shrimpmx.mx.types cimport (
    REQUEST_SEND, STATUS_BAD_BUFFER, STATUS_BAD_RDMA_WINDOW, STATUS_NO_RESOURCES, STATUS_SUCCESS,
    STATUS_TRUNCATED, MxRequest,
)

# Codes that say more than their class, which their low bits are. Of two the larger is raised.
cdef enum:
    CODE_WITHDRAWN = 0x10000000 | MPI_ERR_OTHER
    CODE_UNREADABLE = 0x20000000 | MPI_ERR_BUFFER
    CODE_UNWRITABLE = 0x30000000 | MPI_ERR_BUFFER

# The buffer of the last message that ended by one of the last two.
cdef struct BadBuffer:
    const void *data
    uint64_t length

cdef BadBuffer bad_buffer

# The code of a message that is over.
cdef int error_of(const MxRequest *message) noexcept nogil
