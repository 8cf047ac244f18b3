"""What the Python calls of the MX library hand out."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxPartner, MxRequest


cdef class Partner:
    cdef Library library
    cdef MxPartner *partner          # NULL once its endpoint is closed
    cdef readonly uint32_t node
    cdef readonly uint32_t endpoint


cdef class Status:
    cdef readonly str code
    cdef readonly Partner source
    cdef readonly uint64_t match
    cdef readonly uint32_t length
    cdef readonly uint32_t transferred


cdef class Request:
    cdef Library library
    cdef MxRequest *request          # NULL once collected
    cdef Py_buffer view
    cdef bint has_view
    cdef readonly Status status      # None until collected

# Takes `buffer` (None: no bytes) for as long as the request lasts.
cdef Request request_make(Library library, object buffer, bint writable)
# The request has started: from now on the library keeps the handle alive.
cdef int request_bind(Request handle, MxRequest *request) except -1
# The request is done: its status, and everything that it held is given back.
cdef Status request_collect(Request handle)
cdef Partner partner_of(Library library, MxPartner *partner)
cdef Status status_make(str code, Partner source, uint64_t match, uint32_t length,
                        uint32_t transferred)
# Requests that are not done end with `code`, the others are collected; before the library's
# memory goes.
cdef int collect_all(Library library, str code) except -1
