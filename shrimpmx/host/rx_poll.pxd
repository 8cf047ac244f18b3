"""One poll of a ring: its frames go through the receive handler, up to a budget."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, cost_meter
from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.host.rps cimport PacketSteering
from shrimpmx.native.ring cimport ring
from shrimpmx.native.trace cimport trace_ring
from shrimpmx.shared.layout cimport node_header
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
