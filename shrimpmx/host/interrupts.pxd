"""The irq agent: an interrupt handler that polls rx rings."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.ring cimport ring
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
    cdef int64_t tick_ns             # between two ticks
    cdef int64_t next_tick_ns        # 0: at the first step; NEVER_NS: another core ticks

    cdef void _tick(self, int64_t now_ns) noexcept nogil
    cdef uint32_t _poll(self, interrupt_vector *vector) noexcept nogil
    cdef void _hand_back(self, interrupt_vector *vector, ring *rx,
                         uint32_t position) noexcept nogil
    cdef bint _complete(self, interrupt_vector *vector) noexcept nogil
    cdef void _note_exhausted(self, bint exhausted) noexcept nogil
