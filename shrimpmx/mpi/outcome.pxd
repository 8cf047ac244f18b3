"""What the end of a message means to a program: the code of an error."""

from libc.stdint cimport uint64_t

from shrimpmx.mx.types cimport MxRequest

# The buffer of the last message that ended by CODE_UNREADABLE or CODE_UNWRITABLE.
cdef struct BadBuffer:
    const void *data
    uint64_t length

cdef BadBuffer bad_buffer

# The code of a message that is over.
cdef int error_of(const MxRequest *message) noexcept nogil
