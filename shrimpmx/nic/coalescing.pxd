"""When the NIC wishes to raise an interrupt: the interface of every coalescing policy."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.ring cimport ring


cdef enum Cause:
    CAUSE_NONE = 0
    CAUSE_PACKET = 1     # a packet is in host memory and that is enough
    CAUSE_MARKED = 2     # a packet marked latency-sensitive is
    CAUSE_DEFERRED = 3   # a stream that held a marked packet has ended
    CAUSE_TIMEOUT = 4    # the coalescing delay is over
    CAUSE_FRAMES = 5     # so many packets are waiting
    CAUSE_SENT = 6       # a send is complete and that is enough


cdef class CoalescingPolicy:
    cdef int64_t deadline_ns         # when to call on_deadline; NEVER_NS: the timer is off
    cdef uint64_t deferrals          # marks whose interrupt was put off
    cdef uint64_t deferred_packets   # that came to host memory while one was
    cdef int64_t longest_deferral_ns    # from the first of them to the wish that reports it
    cdef bint failed                 # `failure` is set; a Python policy raised
    cdef readonly object failure

    cdef void use_ring(self, ring *frames, const uint32_t *handled) noexcept
    cdef void on_arrival(self, int64_t now_ns, bint marked,
                         uint32_t length_bytes) noexcept nogil
    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil
    cdef Cause on_send_complete(self, int64_t now_ns) noexcept nogil
    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil
    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil
