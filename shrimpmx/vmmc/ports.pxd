"""The ports of a node: which of its processes the letters to a port are for."""

from libc.stdint cimport uint32_t

from shrimpmx.shared.layout cimport node_header

# Each port belongs to one endpoint of its node at most. False: it is taken.
cdef bint port_take(node_header *node, uint32_t port, uint32_t endpoint) noexcept nogil
cdef void port_give(node_header *node, uint32_t port, uint32_t endpoint) noexcept nogil
cdef void ports_give_all(node_header *node, uint32_t endpoint) noexcept nogil
