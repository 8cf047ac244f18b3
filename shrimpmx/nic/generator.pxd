"""Traffic generator and sink: plays the far node of a one-node run; flows of another protocol."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport Egress, Ingress
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.node cimport Node

# -- A flow of another protocol's packets, evenly spaced or in a closed loop.

cdef class OtherFlow:
    cdef readonly uint32_t frame_bytes
    cdef readonly double interval_ns
    cdef readonly uint32_t window    # packets that may be unanswered; 0: it is an open loop
    cdef uint8_t frame[1500]         # what each packet looks like
    cdef uint64_t number             # of the next packet
    cdef uint64_t answered           # all before this one are
    cdef int64_t patience_ns         # after so long without an answer it goes on by one packet
    cdef int64_t started_ns
    cdef int64_t next_ns             # when the next packet is to be sent

    # Begins, from node to node, with a packet at `now_ns`.
    cdef void start(self, int64_t now_ns, uint32_t source, uint32_t destination,
                    int64_t patience_ns) noexcept nogil
    # Puts the next packet at `place`, which has room for `frame_bytes`.
    cdef void build(self, uint8_t *place, int64_t now_ns) noexcept nogil
    # The packet of that number was answered, and so were all before it.
    cdef void answer(self, uint32_t number, int64_t now_ns) noexcept nogil


cdef enum:
    GENERATED_PER_STEP = 64      # messages sent before others have their turn (ours)
    GENERATED_FRAME_MAX_BYTES = 192
    INVALID_FRAME_BYTES = 128    # the Ethernet head included (coalescing, IV-B2)
    # Between two looks at how far a receiver has come, which take a cache line from it: rare, yet
    # before it has handled all (ours).
    PAUSE_NS = 10_000


cdef class TrafficGenerator(Agent):
    cdef readonly Node node
    cdef readonly Egress egress
    cdef readonly Ingress ingress
    cdef node_header *header
    cdef uint8_t frame[GENERATED_FRAME_MAX_BYTES]   # what each message looks like
    cdef uint32_t frame_bytes
    cdef uint8_t reply[64]           # connect reply
    cdef bint reply_due
    cdef readonly bint connected     # a rank asked and is sent to
    cdef uint32_t target             # its node
    cdef uint32_t target_session
    cdef readonly uint32_t session
    cdef uint16_t first_seqnum       # of message 0
    cdef uint32_t acknum             # of the last acknowledgement
    cdef uint64_t next_number        # of the message to send next
    cdef uint64_t sent_number        # messages sent at least once
    cdef uint64_t acked_number       # messages acknowledged, all from the first
    cdef readonly uint64_t count     # messages to send; 0: no end
    cdef readonly uint32_t size
    cdef readonly uint32_t window
    cdef readonly int64_t resend_delay_ns
    cdef int64_t progress_ns         # when something was last acknowledged, or sent after a pause
    cdef readonly bint invalid       # it sends packets of no valid type
    cdef uint32_t room               # invalid packets that it has room for, as we know
    cdef int64_t pause_ends_ns       # when to look again
    cdef readonly OtherFlow other    # sent beside; None: nothing
    cdef bint blocked                # the link is full

    cdef int sink(self, int64_t now_ns) noexcept nogil
    cdef void take(self, const uint8_t *frame, uint32_t length, int64_t now_ns) noexcept nogil
    cdef void take_connect(self, const uint8_t *frame, int64_t now_ns) noexcept nogil
    cdef void make_reply(self, const uint8_t *request) noexcept nogil
    cdef void take_ack(self, const uint8_t *frame, int64_t now_ns) noexcept nogil
    cdef void acknowledge(self, uint16_t seqnum, int64_t now_ns) noexcept nogil
    cdef int send_reply(self, int64_t now_ns) noexcept nogil
    cdef int send_other(self, int64_t now_ns) noexcept nogil
    cdef uint32_t sendable(self) noexcept nogil
    cdef int generate(self, int64_t now_ns) noexcept nogil
    cdef void go_back(self, int64_t now_ns) noexcept nogil
    cdef int64_t next_due(self, int64_t now_ns, int64_t held_ns) noexcept nogil
    cdef void keep_failure(self) noexcept nogil
