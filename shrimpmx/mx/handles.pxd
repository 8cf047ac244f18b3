"""What the Python calls of the MX library hand out."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxPartner, MxRequest


cdef class Partner:
    cdef Library library
    cdef MxPartner *partner          # NULL once its endpoint is closed
    cdef readonly uint32_t node
    cdef readonly uint32_t endpoint
    cdef public object context


cdef class Status:
    cdef readonly str code
    cdef readonly Partner source
    cdef readonly uint64_t match
    cdef readonly uint32_t length
    cdef readonly uint32_t transferred
    cdef readonly object context


cdef class Request:
    cdef Library library
    cdef MxRequest *request          # NULL once collected
    cdef Py_buffer view
    cdef bint has_view
    cdef Segments segments           # vectored: the user's buffers; `view` is of a copy
    cdef readonly Status status      # None until collected
    cdef readonly object context


cdef class Segments:
    cdef list views
    cdef void scatter(self, const uint8_t *data, uint32_t length)

# How a request ended, without Python objects: what is taken from it under the lock.
cdef struct StatusFields:
    MxPartner *partner
    uint64_t match
    uint32_t length
    uint32_t transferred
    uint8_t status

# Takes `buffer` (None: no bytes) for as long as the request lasts.
cdef Request request_make(Library library, object buffer, bint writable, object context)
# The request has started: from now on the library keeps the handle alive. Under the lock.
cdef void request_bind(Request handle, MxRequest *request) noexcept
# It could not start.
cdef int request_failed(Request handle) except -1
# A done request is given back to the library; under the lock.
cdef void request_take(Library library, MxRequest *request, StatusFields *fields) noexcept nogil
# What request_take found, as its Status; everything that it held is given back. No lock.
cdef Status request_finish(Request handle, const StatusFields *fields)
cdef Status status_of(Library library, const StatusFields *fields, object context)
cdef Partner partner_of(Library library, MxPartner *partner)
# Finishes the forgotten requests that are done. No lock.
cdef int reap_forgotten(Library library) except -1
# Requests that are not done end with `code`, the others are collected; before the library's
# memory goes.
cdef int collect_all(Library library, str code) except -1
