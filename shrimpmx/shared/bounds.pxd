"""Whether what a segment says of its parts fits into it; see bounds.pyx."""

from libc.stdint cimport uint64_t

from shrimpmx.shared.layout cimport control_header, node_header

cdef bint control_fits(control_header *control, uint64_t size_bytes) noexcept
cdef bint node_fits(node_header *node, uint64_t size_bytes, uint64_t heap_bytes) noexcept
