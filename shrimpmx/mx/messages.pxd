"""Sending and receiving."""

from libc.stdint cimport uint64_t

from shrimpmx.mx.handles cimport Partner, Request, Status
from shrimpmx.mx.progression cimport ProgressionCalls


cdef class MessageCalls(ProgressionCalls):
    cdef Request start_send(self, Request handle, Partner partner, uint64_t match,
                            bint synchronous)
    cdef Request start_receive(self, Request handle, uint64_t match, uint64_t mask)
    # Raises MxError "bad-match-mask".
    cdef int check_mask(self, uint64_t match, uint64_t mask) except -1
    # Raises the MxError of a send that could not be delivered.
    cdef int refused(self, Partner partner, Status status) except -1
    cdef int check_partner(self, Partner partner) except -1
