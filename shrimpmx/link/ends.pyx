"""What a NIC needs of its links: an egress to send with and an ingress to receive from.

NICs know these two base classes and nothing else of what lies between nodes: the far end may be a
ring in shared memory (rings.pyx) or another machine. All times are those of the node's own
clock: an ingress gives each frame its arrival by the clock that its own NIC goes by. The processes
of one machine share a clock, so that a ring's ingress takes the arrival that the sender has
computed; ends with a clock each send how long the frame still travels.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.trace cimport Capture
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError


cdef class Egress:
    """Base of the sending ends of `node`'s links: one object for all its destinations.

    Frames are built in place: `prepare` says where, `commit` sends what was built there. `flush`
    makes all of them visible at once and wakes the NICs that they are for.
    """

    def __init__(self, Node node not None):
        self.source = node.header.index
        self.mtu = node.header.geometry.mtu_bytes
        self.full = NO_PROCESS

    def use_capture(self, Capture capture not None) -> None:
        """Keep from now on what it sends, as the end of its node."""
        self.capture = capture.checked_ring(self.source)
        self.capturing = capture

    cdef bint has_destination(self, uint32_t node) noexcept nogil:
        return False

    cdef uint8_t *prepare(self, uint32_t destination) noexcept nogil:
        return NULL

    cdef void commit(self, int64_t now_ns, uint32_t destination, uint32_t length) noexcept nogil:
        pass

    cdef int64_t flush(self, int64_t now_ns) noexcept nogil:
        return NEVER_NS

    cdef int64_t retry_ns(self, int64_t now_ns, uint32_t destination) noexcept nogil:
        return now_ns + LINK_RETRY_NS

    cdef uint32_t in_flight(self, uint32_t destination) noexcept nogil:
        return 0

    cdef uint32_t frames_until_pause(self, uint32_t destination) noexcept nogil:
        return <uint32_t>-1   # no flow control

    cdef int transmit(self, int64_t now_ns, uint32_t destination, const uint8_t *frame,
                      uint32_t length) noexcept nogil:
        """Send a frame that lies elsewhere. 1: sent, or lost by a fault; 0: no room, try later."""
        cdef uint8_t *place = self.prepare(destination)
        if place == NULL:
            return 0
        memcpy(place, frame, length)
        self.commit(now_ns, destination, length)
        return 1

    def send(self, int64_t now_ns, uint32_t destination, bytes frame not None):
        """Send one frame at `now_ns`; False if there is no room. For tests and tools."""
        if not self.has_destination(destination):
            raise InputError(f"no link from node {self.source} to node {destination}")
        if not 16 < len(frame) <= self.mtu:
            raise InputError(f"a frame of {len(frame)} bytes cannot pass a link of mtu {self.mtu}")
        return bool(self.transmit(now_ns, destination, <const uint8_t *>frame,
                                  <uint32_t>len(frame)))

    def flush_at(self, int64_t now_ns):
        """Make sent frames visible; returns when a held frame is due, or None."""
        cdef int64_t due_ns = self.flush(now_ns)
        return None if due_ns == NEVER_NS else due_ns


cdef class Ingress:
    """Base of the receiving ends of a node's links: one object for all its sources.

    Frames are taken in order of their times of arrival, those of one source in the order in which
    they were sent, and are read in place.
    """

    def __cinit__(self, *args, **kwargs):
        self.arrival_ns = self.look_ns = NEVER_NS

    def use_capture(self, Capture capture not None, uint32_t end) -> None:
        """Keep from now on what arrives, as end number `end`."""
        self.capture = capture.checked_ring(end)
        self.capturing = capture

    cdef void look(self, int64_t now_ns) noexcept nogil:
        pass

    cdef void take(self, incoming_frame *taken) noexcept nogil:
        pass

    cdef void finish(self, uint32_t source) noexcept nogil:
        pass

    cdef void finish_all(self) noexcept nogil:
        pass

    cdef void hand_back(self) noexcept nogil:
        pass
