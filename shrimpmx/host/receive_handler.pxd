"""The driver's receive handler: from a frame to an event in an endpoint's ring."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport cost_meter
from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.copy_queue cimport copy_queue
from shrimpmx.host.endpoint cimport TransmitPort, event_writer
from shrimpmx.host.pull_backlog cimport pull_backlog
from shrimpmx.native.ring cimport ring
from shrimpmx.native.trace cimport capture_ring, trace_ring
from shrimpmx.shared.layout cimport endpoint_descriptor, node_header
from shrimpmx.shared.node cimport Node

# -- Refusals: what a receive handler answers to a packet that no endpoint takes.

# Tell the sender's library (a message, connect, rndv or notify was refused) or its driver (a pull
# request was). `refused`: that packet's header, of type `ptype`, mark removed; `nack_type`: enum
# wire_nack. Counted in `counters`; false if there is no room to send.
cdef bint send_nack_lib(TransmitPort *port, uint64_t *counters, const uint8_t *refused,
                        int ptype, uint32_t peer, uint32_t nack_type) noexcept nogil
cdef bint send_nack_mcp(TransmitPort *port, uint64_t *counters, const uint8_t *refused,
                        uint32_t peer, uint32_t nack_type) noexcept nogil


cdef class ReceiveHandler:
    cdef readonly Node node
    cdef readonly uint32_t core      # 0 if it has none, too
    cdef node_header *header
    cdef uint64_t *counters          # of the irq agent that runs the handler; see count_into
    cdef trace_ring *trace           # of the same agent; NULL: tracing is off
    cdef capture_ring *capture       # of the node's NIC; NULL: capturing is off
    cdef uint32_t captured           # the frame's number there
    cdef int64_t now_ns              # time of its records, and of the pulls' timers
    cdef int64_t frame_time_ns       # when the frame to be handled came to host memory
    cdef TransmitPort port           # the core's own tx ring: nacks, pull requests and replies
    cdef DriverContext context       # what the pull engine works with
    cdef uint32_t vector             # that is polled
    cdef copy_queue copies           # of that vector, if the node has a dma agent
    cdef pull_backlog backlog        # pull replies that wait for room in the tx ring
    # The endpoint whose lock is held, across consecutive frames for it.
    cdef int32_t locked              # its index, -1: none
    cdef bint filled                 # it got an event since it was locked
    cdef uint32_t session            # its session
    cdef endpoint_descriptor *descriptor
    cdef event_writer writer
    cdef bint whole_polls            # of frames that are paid for, too
    # finish_batch() has rung the doorbell, or woken processes, for which it has paid.
    cdef bint has_called
    cdef int64_t calls_ns
    cdef cost_meter *meter     # of who pays for these calls; NULL: nobody does
    cdef uint32_t runner             # its own
    # Processes to wake at the end of the batch.
    cdef uint32_t wakes_count
    cdef uint32_t[256] wakes         # runner indices, each once

    # Counts into `counters`, COUNTERS_MAX of them by the indices of an irq agent, from now on: for
    # agents of other kinds, whose own records have other counters at those indices.
    cdef void count_into(self, uint64_t *counters) noexcept
    # Handles one received frame. `frame` must lie in memory of at least 192 bytes (a ring
    # slot does): short data is copied in fixed sizes.
    cdef void handle(self, const uint8_t *frame, uint32_t length) noexcept nogil
    # Handles the `count` frames from `position` on in an rx ring, which are there.
    cdef void handle_slots(self, ring *rx, uint32_t position, uint32_t count) noexcept nogil
    # The end of a poll: sends what waits and has room, gives the lock back, rings the doorbell,
    # wakes the ranks.
    cdef void finish_batch(self) noexcept nogil
    # The end of a frame that was paid for: a batch of its own, unless polls are kept whole.
    cdef void finish_frame(self) noexcept nogil
    # Replies of its pulled regions are sent one at a time, by send_reply(), from now on.
    cdef void pace(self) noexcept
    # From now on the calls that wake processes are paid for, by whether a process is on the CPU of
    # the handler's own, `runner`, as the records of both say.
    cdef void pay_calls(self, cost_meter *meter, uint32_t runner) noexcept
    cdef bint owes_reply(self) noexcept nogil
    # Sends one that it owes. The last one ends a batch, and wakes a NIC that sleeps; `in_poll` it
    # does not where polls are kept whole.
    cdef void send_reply(self, bint in_poll) noexcept nogil
    # What is due by the clock at `now_ns`: pulls whose replies do not come. A batch of its own.
    cdef void tick(self, int64_t now_ns) noexcept nogil

    cdef void _answer_backlog(self) noexcept nogil
    cdef void _drop(self, uint32_t counter) noexcept nogil
    cdef void _handle_event_frame(self, const uint8_t *frame, int ptype) noexcept nogil
    cdef void _handle_host_frame(self, const uint8_t *frame, int ptype) noexcept nogil
    cdef void _handle_pull_request(self, const uint8_t *frame) noexcept nogil
    cdef void _handle_pull_answer(self, const uint8_t *frame, int ptype) noexcept nogil
    cdef void _post(self, const uint8_t *frame, int ptype, uint32_t peer) noexcept nogil
    cdef bint _check_peer(self, const uint8_t *frame, int ptype, uint32_t *peer) noexcept nogil
    cdef int _enter(self, uint32_t endpoint) noexcept nogil
    cdef int _lock(self, uint32_t endpoint) noexcept nogil
    cdef void _leave(self) noexcept nogil
    cdef void _note_call(self, uint32_t runner) noexcept nogil
