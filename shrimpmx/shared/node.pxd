"""A node segment: vectors, rings and endpoints of one emulated node; the check that they fit."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.native.ring cimport ring
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport control_header, interrupt_vector, node_header

# -- Whether what a segment says of its parts fits into it.

cdef bint control_fits(control_header *control, uint64_t size_bytes) noexcept
cdef bint node_fits(node_header *node, uint64_t size_bytes, uint64_t heap_bytes) noexcept


cdef class Node:
    cdef node_header *header
    cdef readonly Control control
    cdef readonly object segment
    cdef uint8_t *heap                    # start of the heap segment, NULL if there is none
    cdef readonly object heap_segment
    cdef object heap_memory               # a view, as `memory`
    cdef object memory       # a view: the segment stays mapped as long as this lives

    cdef int _write_header(self, layout) except -1
    cdef int _write_interrupts(self, layout) except -1
    cdef int _write_rings(self, layout) except -1
    cdef int _write_ring(self, ring *r, uint32_t entries, layout) except -1
    cdef int _write_endpoints(self, layout) except -1
    cdef int _write_vmmc(self, layout) except -1
    cdef interrupt_vector *_vector(self, uint32_t vector) except NULL
