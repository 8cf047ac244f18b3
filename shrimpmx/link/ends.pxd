"""What a NIC needs of its links: an egress to send with and an ingress to receive from."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from shrimpmx.native.trace cimport (
    CAPTURE_BAD_FCS, CAPTURE_RECEIVED, Capture, capture_ring, capture_write,
)


cdef enum:
    NO_PROCESS = 0xFFFFFFFF
    LINK_RETRY_NS = 5000         # soonest to look again for room on a full link (ours)
    # Readable at each incoming frame, however short: a reader may look at a whole header before
    # it checks the length.
    FRAME_READABLE_BYTES = 192


cdef class Egress:
    cdef readonly uint32_t source    # the sending node
    cdef readonly uint32_t mtu       # largest frame, bytes
    cdef readonly object failure     # exception raised by user code: the run ends; or None
    cdef capture_ring *capture       # where it keeps what it sends; NULL: capturing is off
    cdef object capturing            # the Capture that the ring belongs to
    # The processes of this machine whose doorbells the last flush has rung, by their runners.
    cdef uint32_t *rung
    cdef uint32_t rung_count
    # When the last byte of the last committed frame has left; 0: it leaves at once.
    cdef int64_t sent_ns
    # Where there was no room, last; NO_PROCESS: there was, since the caller set it so.
    cdef uint32_t full

    cdef bint has_destination(self, uint32_t node) noexcept nogil
    # Where to build the next frame to a known destination; NULL if there is no room.
    cdef uint8_t *prepare(self, uint32_t destination) noexcept nogil
    # Sends the frame built there.
    cdef void commit(self, int64_t now_ns, uint32_t destination, uint32_t length) noexcept nogil
    # Makes all sent frames visible, once per step; returns when to flush again at the latest.
    cdef int64_t flush(self, int64_t now_ns) noexcept nogil
    # When there may be room again after prepare() found none.
    cdef int64_t retry_ns(self, int64_t now_ns, uint32_t destination) noexcept nogil
    # Frames that are visible and not yet taken at the far end; any process of the run may ask.
    cdef uint32_t in_flight(self, uint32_t destination) noexcept nogil
    # Frames that the far NIC takes before it pauses its sender (IEEE 802.3x).
    cdef uint32_t frames_until_pause(self, uint32_t destination) noexcept nogil

    cdef int transmit(self, int64_t now_ns, uint32_t destination, const uint8_t *frame,
                      uint32_t length) noexcept nogil


cdef struct incoming_frame:
    const uint8_t *frame         # FRAME_READABLE_BYTES of it may be read, at least
    uint32_t length
    uint32_t source              # the node that it comes from
    bint bad_fcs                 # its frame check sequence does not fit
    uint32_t captured            # its number in the capture, while there is one


cdef class Ingress:
    cdef int64_t arrival_ns          # of the earliest frame not taken; NEVER_NS: none known
    cdef public int64_t look_ns      # when to look without a doorbell; NEVER_NS: there is one
    cdef readonly object failure     # as in an Egress
    cdef capture_ring *capture       # where take_frame() keeps what arrives; NULL: nowhere
    cdef object capturing            # as in an Egress
    cdef public int64_t look_every_ns  # its link's row (links.py) says so; 0: there is a doorbell

    # Sees what has arrived, and when, by this node's clock; once per step.
    cdef void look(self, int64_t now_ns) noexcept nogil
    # Takes the frame that arrives at arrival_ns. It stays readable until it is finished with.
    cdef void take(self, incoming_frame *taken) noexcept nogil
    # Nothing reads the oldest taken frame of `source`, or any that is taken, after the next
    # hand_back().
    cdef void finish(self, uint32_t source) noexcept nogil
    cdef void finish_all(self) noexcept nogil
    # Returns the room of finished frames to their senders, once per step.
    cdef void hand_back(self) noexcept nogil


cdef inline void take_frame(Ingress ingress, int64_t time_ns,
                            incoming_frame *taken) noexcept nogil:
    """Take the frame that arrives at arrival_ns, and keep it in the capture if there is one."""
    ingress.take(taken)
    if ingress.capture != NULL:
        taken.captured = capture_write(
            ingress.capture, time_ns,
            CAPTURE_RECEIVED | CAPTURE_BAD_FCS if taken.bad_fcs else CAPTURE_RECEIVED,
            taken.frame, taken.length)
