"""What becomes of requests: test and wait, peek, cancel, forget."""

from libc.stdint cimport uint64_t

from shrimpmx.mx.handles cimport Request, Status
from shrimpmx.mx.messages cimport MessageCalls


cdef class CompletionCalls(MessageCalls):
    cdef Status take(self, Request handle)
    cdef int take_back(self, Request request) except -1
    cdef object completed(self, uint64_t match, uint64_t mask, bint consume,
                          bint blocking, object timeout_ns)
