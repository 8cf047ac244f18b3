"""Sending and receiving, from one buffer or several."""

from libc.stdint cimport uint64_t

from shrimpmx.mx.core cimport ProgressionCalls
from shrimpmx.mx.handles cimport Partner, Request, Segments, Status

# -- Messages whose data lies in several buffers.

# One buffer with the data of `buffers`, None: empty; InputError if they are too many.
cdef object gather(object buffers)
# The buffers to receive into, checked, and their total length, bytes.
cdef Segments segments_of(object buffers, Py_ssize_t *length)


cdef class MessageCalls(ProgressionCalls):
    cdef Request start_send(self, Request handle, Partner partner, uint64_t match,
                            bint synchronous)
    cdef Request start_receive(self, Request handle, uint64_t match, uint64_t mask)
    # Raises MxError "bad-match-mask".
    cdef int check_mask(self, uint64_t match, uint64_t mask) except -1
    # Raises the MxError of a send that could not be delivered.
    cdef int refused(self, Partner partner, Status status) except -1
    cdef int check_partner(self, Partner partner) except -1
