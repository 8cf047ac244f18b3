"""The firmware of an Ethernet NIC: one agent per emulated node."""

from libc.stdint cimport int64_t

from shrimpmx.nic.coalescing cimport CoalescingPolicy
from shrimpmx.nic.dma cimport dma_engine
from shrimpmx.nic.interrupt_line cimport InterruptLine
from shrimpmx.nic.port cimport Port


cdef class Firmware(Port):
    cdef readonly CoalescingPolicy policy
    cdef readonly InterruptLine line
    cdef dma_engine dma

    cdef int receive(self, int64_t now_ns) noexcept nogil
    cdef void arrive(self) noexcept nogil
    cdef void complete(self) noexcept nogil
