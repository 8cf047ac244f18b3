"""The interrupt handler of a node with SHRIMP's NIC."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport cost_meter
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport vmmc_core, vmmc_process


cdef enum:
    PENDING_WORDS = 4            # of vmmc_core.pending


cdef class VmmcInterruptAgent(Agent):
    cdef readonly Node node
    cdef readonly uint32_t core
    cdef cost_meter meter
    cdef readonly int64_t occupancy_ns   # as of an InterruptAgent
    cdef node_header *header
    cdef vmmc_core *interrupts
    cdef uint64_t[PENDING_WORDS] taken   # endpoints whose interrupts it is serving

    cdef int take_pending(self, int64_t now_ns) noexcept nogil
    cdef int serve_taken(self, int64_t now_ns) noexcept nogil
    cdef void serve(self, uint32_t endpoint, int64_t now_ns) noexcept nogil
    cdef bint wake(self, vmmc_process *process, int64_t now_ns) noexcept nogil
    cdef uint32_t notify(self, vmmc_process *process, int64_t now_ns) noexcept nogil
    cdef void disable_watched(self, vmmc_process *process) noexcept nogil
