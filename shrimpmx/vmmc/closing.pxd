"""How a process of VMMC leaves, by itself or after its death."""

from libc.stdint cimport uint32_t

from shrimpmx.shared.node cimport Node

# Tells the NIC, which tells the peers; harmless if the endpoint is closed.
cdef void begin_closing(Node node, uint32_t endpoint) noexcept nogil
