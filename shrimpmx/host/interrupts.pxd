"""The irq agent: an interrupt handler that polls rx rings."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.host.rps cimport PacketSteering
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.ring cimport ring
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport (
    NODE_VECTORS_MAX,
    core_interrupts,
    interrupt_vector,
    node_header,
)
from shrimpmx.shared.node cimport Node


cdef class InterruptAgent(Agent):
    cdef readonly Node node
    cdef readonly uint32_t core
    cdef readonly uint32_t budget
    cdef readonly uint32_t demote_after
    cdef readonly int64_t interrupt_time_ns
    cdef readonly int64_t packet_cost_ns
    cdef readonly uint32_t defer_hard_irqs
    cdef readonly int64_t flush_timeout_ns
    cdef ReceiveHandler handler
    cdef node_header *header
    cdef core_interrupts *interrupts
    cdef wait_slot *nic_slot
    cdef PacketSteering steering     # what it hands frames on by
    cdef bint steers                 # there is one
    # Rings to be polled, by bits: vectors whose token this agent holds, and the core's backlog
    # (CORE_PENDING_BACKLOG). A round polls each of those that were scheduled when it began.
    cdef uint64_t scheduled
    cdef uint64_t left               # of this round
    cdef bint exhausted              # a poll of this round used up the budget
    cdef uint32_t exhausted_polls    # rounds in a row with such a poll
    cdef int64_t tick_ns             # between two ticks
    cdef int64_t next_tick_ns        # 0: at the first step; NEVER_NS: another core ticks

    # Polls that no interrupt begins: one timer per vector.
    cdef bint keeps_timers           # interrupts are deferred, or ranks poll
    cdef bint watches                # ranks poll: it has the timers of vectors with its timer_core
    cdef uint64_t timers             # vectors whose timer runs
    cdef int64_t next_poll_ns        # the first of them, or NEVER_NS
    cdef int64_t[NODE_VECTORS_MAX] poll_ns        # when it expires
    cdef uint32_t[NODE_VECTORS_MAX] defers_left   # polls that may yet find nothing

    cdef bint paid                   # the cost of the next frame of the first ring left is over
    cdef uint32_t polled             # frames of the poll that is going on, or has just ended

    cdef void _tick(self, int64_t now_ns) noexcept nogil
    cdef uint64_t _take_interrupts(self, int64_t now_ns) noexcept nogil
    cdef ring *_ring(self, uint32_t number) noexcept nogil
    cdef uint32_t _open(self, uint32_t number, ring *rx) noexcept nogil
    cdef uint32_t _poll(self, uint32_t number) noexcept nogil
    cdef void _spread(self, ring *rx, uint32_t position, uint32_t count) noexcept nogil
    cdef void _end_poll(self, uint32_t number, uint32_t handled) noexcept nogil
    cdef int64_t _interrupted_until(self, uint64_t taken, uint32_t count,
                                    int64_t now_ns) noexcept nogil
    cdef bint _poll_charged(self, uint32_t number, int64_t now_ns) noexcept nogil
    cdef void _hand_back(self, uint32_t number, ring *rx, uint32_t position) noexcept nogil
    cdef bint _complete(self, uint32_t number, uint32_t polled) noexcept nogil
    cdef bint _defer(self, interrupt_vector *vector, uint32_t number,
                     uint32_t polled) noexcept nogil
    cdef void _set_timer(self, interrupt_vector *vector, uint32_t number,
                         int64_t due_ns) noexcept nogil
    cdef uint32_t _look_at_timers(self, int64_t now_ns) noexcept nogil
    cdef bint _is_due(self, interrupt_vector *vector, uint32_t number, uint32_t seen,
                      int64_t now_ns) noexcept nogil
    cdef void _begin_timed_poll(self, interrupt_vector *vector, uint32_t number,
                                uint32_t seen) noexcept nogil
    cdef void _note_exhausted(self) noexcept nogil
