"""The irq agent: an interrupt handler that polls rx rings."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport core_interrupts, interrupt_vector, node_header
from shrimpmx.shared.node cimport Node


cdef class InterruptAgent(Agent):
    cdef readonly Node node
    cdef readonly uint32_t core
    cdef readonly uint32_t budget
    cdef readonly uint32_t demote_after
    # The runner gives up its real-time priority while this is true, and takes it back after.
    cdef readonly bint wants_demotion
    cdef ReceiveHandler handler
    cdef node_header *header
    cdef core_interrupts *interrupts
    cdef wait_slot *nic_slot
    cdef uint64_t scheduled          # vectors whose token this agent holds
    cdef uint32_t exhausted_polls    # polls in a row that used up the budget

    cdef uint32_t _poll(self, interrupt_vector *vector) noexcept nogil
    cdef bint _complete(self, interrupt_vector *vector) noexcept nogil
    cdef void _note_exhausted(self, bint exhausted) noexcept nogil
