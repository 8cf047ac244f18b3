"""The irq agents: a handler that polls rx rings, and the handler of SHRIMP's interrupts."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, cost_meter
from shrimpmx.host.poll_timers cimport interrupt_deferral, poll_timers
from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.host.rx_poll cimport RxPoll
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport core_interrupts, interrupt_vector, node_header
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport vmmc_core, vmmc_process


@cython.final
cdef class InterruptAgent(Agent):
    cdef readonly Node node
    cdef readonly uint32_t core
    cdef uint32_t demote_after
    cdef cost_meter *meter               # of `rx`
    # How long it works at least in an interrupt, also in one that had to wait until the handler was
    # ready for it; 0: from its beginning on.
    cdef readonly int64_t occupancy_ns
    cdef bint pays_replies
    cdef node_header *header
    cdef core_interrupts *interrupts
    cdef wait_slot *nic_slot
    cdef RxPoll rx
    cdef ReceiveHandler handler      # that of `rx`
    # Rings to be polled, by bits: vectors whose token this agent holds, and the core's backlog
    # (CORE_PENDING_BACKLOG). A round polls each of those that were scheduled when it began.
    cdef uint64_t scheduled
    cdef uint64_t left               # of this round
    cdef bint calls                  # a poll ends when its calls have had their time: _pays_calls
    cdef bint reply_paid             # the next pull reply that it owes
    cdef bint reaps                  # an interrupt that it has begun reports completed sends
    cdef bint exhausted              # a poll of this round used up the budget
    cdef uint32_t exhausted_rounds   # rounds in a row with such a poll

    # Polls that no interrupt begins.
    cdef interrupt_deferral deferral
    cdef bint ranks_poll             # suspensions of vectors with its timer_core are its business
    cdef poll_timers timers

    cdef int64_t tick_ns             # between two ticks
    cdef int64_t next_tick_ns        # 0: at the first step; NEVER_NS: another core ticks

    cdef void _pay(self, int64_t delivery_ns, bint is_process) noexcept
    cdef uint32_t _begin_polls(self, int64_t now_ns) noexcept nogil
    cdef void _be_interrupted(self, uint64_t raised, uint32_t count, int64_t now_ns) noexcept nogil
    cdef uint64_t _take_interrupts(self, int64_t now_ns) noexcept nogil
    cdef uint32_t _take_timed(self, int64_t now_ns) noexcept nogil
    cdef bint _is_due(self, interrupt_vector *vector, uint32_t number, uint32_t seen,
                      int64_t now_ns) noexcept nogil
    cdef void _begin_timed_poll(self, interrupt_vector *vector, uint32_t number,
                                uint32_t seen) noexcept nogil
    cdef bint _works_for_sends(self, int64_t now_ns) noexcept nogil
    cdef bint _works_for_reply(self, int64_t now_ns) noexcept nogil
    cdef bint _complete(self, uint32_t number) noexcept nogil
    cdef void _defer(self, interrupt_vector *vector, uint32_t number) noexcept nogil
    cdef bint _watches(self, const interrupt_vector *vector) noexcept nogil
    cdef bint _pays_calls(self, int64_t now_ns) noexcept nogil
    cdef void _note_exhausted(self) noexcept nogil
    cdef void _tick(self, int64_t now_ns) noexcept nogil


# -- The interrupt handler of a node with SHRIMP's NIC.

cdef enum:
    PENDING_WORDS = 4            # of vmmc_core.pending


cdef class VmmcInterruptAgent(Agent):
    cdef readonly Node node
    cdef readonly uint32_t core
    cdef Prices prices               # of the host, which the meter reads; None: all is free
    cdef cost_meter meter
    cdef readonly int64_t occupancy_ns   # as of an InterruptAgent
    cdef node_header *header
    cdef vmmc_core *interrupts
    cdef uint64_t[PENDING_WORDS] taken   # endpoints whose interrupts it is serving
    cdef bint disabled               # it has worked to disable theirs

    cdef int take_pending(self, int64_t now_ns) noexcept nogil
    cdef bint works_to_disable(self, int64_t now_ns) noexcept nogil
    cdef int64_t wakes_taken(self) noexcept nogil
    cdef int serve_taken(self, int64_t now_ns) noexcept nogil
    cdef void serve(self, uint32_t endpoint, int64_t now_ns) noexcept nogil
    cdef bint wake(self, vmmc_process *process, int64_t now_ns) noexcept nogil
    cdef uint32_t notify(self, vmmc_process *process, int64_t now_ns) noexcept nogil
    cdef void disable_watched(self, vmmc_process *process) noexcept nogil
