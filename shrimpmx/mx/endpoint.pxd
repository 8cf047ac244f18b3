"""An endpoint of the MX library: for Python, and for compiled workloads."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mx.completion cimport CompletionCalls
from shrimpmx.mx.handles cimport Request


cdef class Endpoint(CompletionCalls):
    cdef object wait_polling_all(self, Request handle, object timeout_ns, uint32_t wakeups)
    cdef object look(self, uint64_t match, uint64_t mask, bint blocking,
                     object timeout_ns)
