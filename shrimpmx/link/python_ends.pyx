"""Ends of links written in Python: subclass both and hand them to a NIC.

Each call takes the GIL. The first exception of a subclass is kept in `failure`; after it the
subclass is not called any more, and the runner of the NIC ends the run.
"""

from collections import defaultdict, deque
from heapq import heappop, heappush

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free

from shrimpmx.link.ends cimport FRAME_READABLE_BYTES, Ingress, incoming_frame
from shrimpmx.link.line cimport EmulatedLine
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.node cimport Node


cdef class PythonEgress(EmulatedLine):
    """Base of a user's own egress; rate, delay, gap and faults are those of EmulatedLine.

    Override `reaches` and `carry`; `room` if the link can be full; `deliver` if frames do not
    travel one by one.
    """

    def __cinit__(self, Node node not None, *args, **kwargs):
        # Faults read whole headers, however short a frame is.
        self.frame = <uint8_t *>calloc(1, node.header.geometry.mtu_bytes + FRAME_READABLE_BYTES)
        if self.frame == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.frame)

    def reaches(self, node):
        """Whether there is a link to `node`."""
        return False

    def carry(self, destination, frame, arrival_ns, bad_fcs):
        """Send `frame` (bytes), whose last bit arrives at `arrival_ns` by this end's clock, with
        a frame check sequence that does not fit if `bad_fcs`.
        """

    def room(self, destination):
        """How many frames `carry` takes now. Asked for each frame before it is built, and for 2 if
        there are faults, as one frame may become two.
        """
        return 2

    def deliver(self, now_ns):
        """Called once per step, behind all calls of `carry`: make their frames visible at the
        far end. Returns when to be called again at the latest, or None.
        """
        return None

    cdef bint has_destination(self, uint32_t node) noexcept nogil:
        with gil:
            try:
                return self.failure is None and bool(self.reaches(node))
            except BaseException as error:
                self.failure = error
                return False

    cdef bint has_room(self, uint32_t destination, uint32_t wanted) noexcept nogil:
        with gil:
            try:
                return self.failure is None and self.room(destination) >= wanted
            except BaseException as error:
                self.failure = error
                return False

    cdef uint8_t *place(self, uint32_t destination) noexcept nogil:
        return self.frame

    cdef void fill(self, uint32_t destination, uint32_t length, int64_t arrival_ns,
                   bint bad_fcs) noexcept nogil:
        with gil:
            try:
                if self.failure is None:
                    self.carry(destination, (<const char *>self.frame)[:length], arrival_ns,
                               bool(bad_fcs))
            except BaseException as error:
                self.failure = error

    cdef int64_t publish(self, int64_t now_ns) noexcept nogil:
        with gil:
            try:
                due_ns = self.deliver(now_ns) if self.failure is None else None
                return NEVER_NS if due_ns is None else <int64_t>due_ns
            except BaseException as error:
                self.failure = error
        return NEVER_NS


cdef class PythonIngress(Ingress):
    """Base of a user's own ingress. Override `arrivals`; where no doorbell wakes the NIC, set
    `look_ns` there to when it is to look again, ns.
    """

    def __cinit__(self, *args, **kwargs):
        self.waiting = []
        self.finished = defaultdict(int)
        self.taken = defaultdict(deque)

    def arrivals(self, now_ns):
        """Called once per step: the frames that have come since, each as (arrival_ns, source,
        frame, bad_fcs), those of one source in order. Times are of this node's clock, which
        stands at `now_ns`; they may lie ahead.
        """
        return ()

    cdef void look(self, int64_t now_ns) noexcept nogil:
        with gil:
            try:
                if self.failure is None:
                    for arrival_ns, source, frame, bad_fcs in self.arrivals(now_ns):
                        heappush(self.waiting, (
                            <int64_t>arrival_ns, self.number, <uint32_t>source,
                            bytes(frame).ljust(FRAME_READABLE_BYTES, b"\0"), len(frame),
                            bool(bad_fcs)))
                        self.number += 1
            except BaseException as error:
                self.failure = error
            self.find_earliest()

    cdef void find_earliest(self) noexcept:
        self.arrival_ns = self.waiting[0][0] if self.waiting else NEVER_NS

    cdef void take(self, incoming_frame *taken) noexcept nogil:
        with gil:
            _, _, source, frame, length, bad_fcs = heappop(self.waiting)
            self.taken[source].append(frame)
            taken.frame = <const uint8_t *><const char *>frame
            taken.length = length
            taken.source = source
            taken.bad_fcs = bad_fcs
            self.find_earliest()

    cdef void finish(self, uint32_t source) noexcept nogil:
        with gil:
            self.finished[source] += 1

    cdef void finish_all(self) noexcept nogil:
        with gil:
            for source, frames in self.taken.items():
                self.finished[source] = len(frames)

    cdef void hand_back(self) noexcept nogil:
        with gil:
            for source, count in self.finished.items():
                for _ in range(count):
                    self.taken[source].popleft()
            self.finished.clear()
