"""An endpoint of the MX library: for Python, and for compiled workloads."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.mx.handles cimport Request
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.progress cimport WakeCondition
from shrimpmx.mx.types cimport MxPartner, MxRequest
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.node cimport Node
from shrimpmx.wait.strategy cimport WaitResult
from shrimpmx.wait.waiter cimport Waiter


cdef class Endpoint:
    cdef Library library
    cdef WakeCondition wake
    cdef readonly Node node
    cdef readonly Control control
    cdef readonly Waiter waiter
    cdef readonly uint32_t index

    # Start a request (NULL: no memory). The caller keeps `data` until the request is done,
    # tests or waits for it, and releases it. Sends go out at the next doorbell_c or pass.
    cdef MxRequest *isend_c(self, MxPartner *partner, const void *data, uint32_t length,
                            uint64_t match) noexcept nogil
    cdef MxRequest *irecv_c(self, void *data, uint32_t capacity, uint64_t match,
                            uint64_t mask) noexcept nogil
    cdef void doorbell_c(self) noexcept nogil
    # Sends the acknowledgements that are owed now, due or not: before computing for long.
    cdef void flush_c(self) noexcept nogil
    # One pass.
    cdef int progress_c(self) noexcept nogil
    # Whether it is done; makes one pass if it was not.
    cdef bint test_c(self, MxRequest *request) noexcept nogil
    # Waits until it is done (WAIT_READY), the deadline (NEVER_NS: none) or a stop.
    cdef WaitResult wait_c(self, MxRequest *request, int64_t deadline_ns) noexcept nogil
    cdef void release_c(self, MxRequest *request) noexcept nogil
    # Waits until something may have changed for the library.
    cdef WaitResult idle_c(self, int64_t deadline_ns) noexcept nogil

    cdef WaitResult traced_wait(self, int64_t until_ns) noexcept nogil
    cdef int check_open(self) except -1
    cdef int check_own(self, Request request) except -1
    cdef int check_can_wait(self) except -1
    cdef int check_stopped(self, WaitResult result) except -1
    cdef object wait_in_slices(self, Request handle, object timeout_ns)
