"""Ends of links written in Python."""

from libc.stdint cimport uint8_t, uint64_t

from shrimpmx.link.ends cimport Ingress
from shrimpmx.link.line cimport EmulatedLine


cdef class PythonEgress(EmulatedLine):
    cdef uint8_t *frame          # where the next frame is built, whatever its destination


cdef class PythonIngress(Ingress):
    cdef list waiting            # heap of the frames to take: (arrival_ns, number, source, ...)
    cdef uint64_t number         # of the next frame
    cdef object taken            # by source: the frames that are read, oldest first
    cdef object finished         # by source: how many of them are finished with

    cdef void find_earliest(self) noexcept
