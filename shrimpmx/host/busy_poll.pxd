"""A rank that polls the rx ring itself, instead of waiting for the interrupt handler."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.ring cimport ring
from shrimpmx.native.trace cimport trace_ring
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport COUNTERS_MAX, interrupt_vector
from shrimpmx.shared.node cimport Node


cdef class BusyPoll:
    cdef readonly Node node
    cdef readonly int64_t suspend_timeout_ns
    cdef Host host                   # of the rank
    cdef bint pays                   # for each frame
    # Whether the last look found frames, or the pass after it events.
    cdef readonly bint found
    cdef bint suspends               # interrupts stay off while it finds something
    cdef ReceiveHandler handler
    cdef object capturing            # the Capture that it notes drops in; None: there is none
    cdef interrupt_vector *vector
    cdef ring *rx
    cdef wait_slot *watcher          # of the irq agent that has the timer
    cdef wait_slot *nic_slot
    cdef wait_slot *own_slot         # of the rank; NULL: it never sleeps
    cdef uint32_t mine               # the token while this rank has it
    cdef uint64_t *irq_counters      # of the core's irq agent; added to with the token only
    cdef uint64_t *rank_counters
    cdef uint64_t[COUNTERS_MAX] counts  # since they were last added to those two

    # Whose it is, before the first look. It sends from `tx`, of which the rank is the producer;
    # `slot` is what the rank sleeps on, NULL if it never does.
    cdef int bind(self, uint32_t runner, ring *tx, uint64_t *counters, wait_slot *slot,
                  Host host) except -1
    cdef void use_trace(self, trace_ring *trace) noexcept
    # Handles some frames if there are any and no agent does; returns how many. With the
    # endpoint's library lock.
    cdef uint32_t look(self, int64_t now_ns) noexcept nogil
    # A pass found events: the rank has work, and interrupts stay off meanwhile.
    cdef void keep_off(self, int64_t now_ns) noexcept nogil
    # The rank has looked in vain and stops looking. By any thread.
    cdef void resume(self) noexcept nogil
    # A look of a rank that waits: whether a pass would handle frames. By any thread.
    cdef bint ready(self) noexcept nogil

    cdef uint32_t _room(self) noexcept nogil
    cdef uint32_t _poll(self, int64_t now_ns, uint32_t budget) noexcept nogil
    cdef void _add_counts(self) noexcept nogil
    cdef void _hand_on(self, int64_t now_ns, uint32_t seen) noexcept nogil
    cdef void _suspend(self, int64_t now_ns) noexcept nogil
