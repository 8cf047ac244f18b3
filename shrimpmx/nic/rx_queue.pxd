"""One rx queue of an Ethernet NIC: what decides and raises its interrupts."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.native.ring cimport ring
from shrimpmx.nic.coalescing cimport CoalescingPolicy
from shrimpmx.nic.interrupt_line cimport InterruptLine


cdef class RxQueue:
    cdef readonly uint32_t number    # also its vector's
    cdef readonly CoalescingPolicy policy
    cdef readonly InterruptLine line
    cdef ring *frames
    cdef uint64_t deferrals          # of the policy's, counted so far
    cdef uint64_t deferred_packets

    cdef void end_step(self, uint64_t *counters) noexcept nogil
