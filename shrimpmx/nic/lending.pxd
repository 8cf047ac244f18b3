"""The lock of the process that acts as the NICs, where senders lend them their CPU."""

from libc.stdint cimport uint32_t

from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.vmmc cimport vmmc_node


cdef class Lending:
    cdef list nodes              # keeps them mapped
    cdef Control control
    cdef vmmc_node **shared      # of each node
    cdef node_header **headers   # the same
    cdef uint32_t count

    cdef void take(self) noexcept nogil
    cdef bint attempt(self) noexcept nogil   # the same without waiting; False: it is taken
    cdef void give(self) noexcept nogil
    cdef void repair(self) noexcept nogil
