"""A stream socket as compiled code sees it."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.sockets.network cimport Network
from shrimpmx.wait.waiter cimport WaitResult


cdef class Stream:
    cdef object __weakref__
    cdef readonly Network network
    cdef uint32_t slot
    cdef readonly bint closed

    # At once: bytes, 0 at the end of the stream, or a negative errno (EAGAIN: would block).
    cdef int64_t send_c(self, const uint8_t *data, uint64_t length) noexcept nogil
    cdef int64_t recv_c(self, uint8_t *data, uint64_t length) noexcept nogil
    cdef bint readable_c(self) noexcept nogil
    cdef bint writable_c(self) noexcept nogil

    # These wait in the process, by its strategy (no user-level threads). send_all_c: `length`;
    # recv_some_c: from 1 to `length` bytes, 0 at the end; recv_all_c: fewer than `length` only at
    # the end. Or a negative errno: ETIMEDOUT past the deadline, ECANCELED when the run stops.
    cdef int64_t send_all_c(self, const uint8_t *data, uint64_t length,
                            int64_t deadline_ns) noexcept nogil
    cdef int64_t recv_some_c(self, uint8_t *data, uint64_t length,
                             int64_t deadline_ns) noexcept nogil
    cdef int64_t recv_all_c(self, uint8_t *data, uint64_t length,
                            int64_t deadline_ns) noexcept nogil
    cdef WaitResult wait_c(self, bint reading, bint writing, int64_t deadline_ns) noexcept nogil

    # The same with Python's errors, and by Network.wait_hook where there is one.
    cdef object stopped_error(self)
    cdef int await_ready(self, bint reading, bint writing, int64_t deadline_ns) except -1
    cdef int check_open(self) except -1
    cdef int64_t receive(self, uint8_t *data, uint64_t length, int64_t deadline_ns,
                         bint peek) except -1
