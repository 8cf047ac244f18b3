"""Calls about the endpoint as a whole: progress, wakeups, draining, closing."""

from shrimpmx.mx.core cimport EndpointCore


cdef class ProgressionCalls(EndpointCore):
    pass
