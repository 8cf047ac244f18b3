"""Interrupts of pages, as SHRIMP's NIC raises them."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.trace cimport trace_ring
from shrimpmx.nic.coalescing cimport Cause
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport vmmc_process


cdef struct watchdog_timer:
    int64_t due_ns           # NEVER_NS: it does not run
    uint32_t polled          # what the owner had counted when it was started


cdef class PageInterrupts:
    cdef readonly Node node
    cdef node_header *header
    cdef uint64_t *counters          # the NIC agent's
    cdef trace_ring *trace           # the NIC agent's; NULL: tracing is off
    cdef int64_t watchdog_ns
    cdef watchdog_timer *timers      # one per endpoint
    cdef int64_t due_ns              # of the earliest timer; NEVER_NS: none runs
    cdef uint32_t core_on_nic_cpu    # the core, on the NIC's CPU, that was interrupted last, + 1

    # Something was written to pages `first` to `last`, and its sender asks for an interrupt.
    cdef void written(self, uint32_t endpoint, uint64_t first, uint64_t last,
                      int64_t now_ns) noexcept nogil
    # Ends the timers that are due.
    cdef void expire(self, int64_t now_ns) noexcept nogil
    cdef bint handler_waits(self) noexcept nogil
    cdef void start_timer(self, uint32_t endpoint, vmmc_process *process,
                          int64_t now_ns) noexcept nogil
    cdef void find_earliest(self) noexcept nogil
    cdef void interrupt(self, uint32_t endpoint, vmmc_process *process, Cause cause,
                        int64_t now_ns) noexcept nogil
