"""An endpoint of the MX library, for Python and for workloads, and what becomes of requests."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mx.handles cimport Request, Status
from shrimpmx.mx.messages cimport MessageCalls

# -- What becomes of requests: test and wait, peek, cancel, forget.

cdef class CompletionCalls(MessageCalls):
    cdef Status take(self, Request handle)
    cdef int take_back(self, Request request) except -1
    cdef object completed(self, uint64_t match, uint64_t mask, bint consume,
                          bint blocking, object timeout_ns)


cdef class Endpoint(CompletionCalls):
    cdef object wait_polling_all(self, Request handle, object timeout_ns, uint32_t wakeups)
    cdef object look(self, uint64_t match, uint64_t mask, bint blocking,
                     object timeout_ns)
