"""One poll of a ring, by a handler or a rank: its frames go through the receive handler."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, cost_meter
from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.ring cimport ring
from shrimpmx.native.trace cimport trace_ring
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport COUNTERS_MAX, frame_slot, interrupt_vector, node_header
from shrimpmx.shared.node cimport Node

cdef enum:
    # The core's backlog is polled as if it were one more vector: the bit of CORE_PENDING_BACKLOG.
    BACKLOG = 63


@cython.final
cdef class RxPoll:
    cdef ReceiveHandler handler
    cdef uint32_t budget             # frames of a poll at most
    cdef uint32_t polled             # frames of the poll that is going on, or has just ended
    cdef bint goes_on                # the next call goes on with this poll
    cdef Prices prices               # of the host; None: all is free
    cdef cost_meter meter
    cdef bint pays                   # for each frame
    cdef int64_t until_ns            # the handler works for the next frame until then
    cdef bint paid                   # ... which is over at its next step
    cdef bint is_cold                # the frames of this poll are
    cdef interrupt_vector *taken     # whose ring is polled, until its first frame is paid for
    cdef bint poll_is_due            # its first frame is to be paid for, and the poll with it
    cdef node_header *header
    cdef uint32_t core
    cdef uint32_t batch              # frames handed back to the NIC at a time
    cdef PacketSteering steering     # what it hands frames on by
    cdef bint steers                 # there is one
    cdef uint64_t *counters          # of the irq agent
    cdef trace_ring *trace

    # Polls a vector's rx ring, whose token the caller has, or the core's backlog. True when the
    # poll has ended: fewer than `budget` frames were handled only if the ring is empty. False: the
    # handler works until `until_ns`, or owes replies; the next call goes on with the same
    # poll.
    cdef bint poll(self, uint32_t number, int64_t now_ns) noexcept nogil

    cdef ring *_ring(self, uint32_t number) noexcept nogil
    cdef uint32_t _open(self, uint32_t number, ring *rx) noexcept nogil
    cdef bint _handle(self, uint32_t number, ring *rx, uint32_t position, uint32_t count,
                      int64_t now_ns) noexcept nogil
    cdef bint _spread(self, ring *rx, uint32_t position, uint32_t count,
                      int64_t now_ns) noexcept nogil
    cdef void _begin_paid(self, uint32_t number) noexcept nogil
    cdef bint _is_paid(self, ring *rx, uint32_t position, int64_t now_ns) noexcept nogil
    cdef void _hand_back(self, uint32_t number, ring *rx, uint32_t position) noexcept nogil
    cdef void _end(self, uint32_t number) noexcept nogil


# -- A rank that polls the rx ring itself, instead of waiting for the interrupt handler.

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


# -- Software steering (RPS): a handler hands frames on to other cores.

cdef class PacketSteering:
    cdef Node node
    cdef node_header *header
    cdef uint64_t *counters          # of the irq agent that hands on
    cdef uint32_t core               # its own
    cdef uint32_t cores_count
    cdef uint8_t[64] cores           # that frames go to
    cdef uint64_t handed_to          # cores that have got frames since the last end of a poll

    # False: the frame is to be handled here and now. Else it was handed on, or dropped.
    cdef bint hand_on(self, const frame_slot *slot) noexcept nogil
    # The frames handed on become visible; their cores are interrupted. With the vector's token.
    cdef void end_poll(self) noexcept nogil

    cdef bint _append(self, uint32_t core, const frame_slot *slot) noexcept nogil
