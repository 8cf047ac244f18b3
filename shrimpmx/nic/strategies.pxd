"""Coalescing policies: their interface, the paper's four, the polling watchdog, one in Python."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.ring cimport ring

# -- When the NIC wishes to raise an interrupt: the interface of every coalescing policy.

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


cdef class Disabled(CoalescingPolicy):
    pass


cdef class TimedPolicy(CoalescingPolicy):
    cdef readonly int64_t delay_ns
    cdef readonly bint mark_resets_timer
    cdef readonly bint free_running
    cdef int64_t reset_ns            # when the timer was last reset, of one that runs freely

    cpdef int use_clock(self, double phase, double drift) except -1
    cdef void arm(self, int64_t now_ns) noexcept nogil
    cdef void reset_timer(self, int64_t now_ns, Cause cause) noexcept nogil


cdef class Timeout(TimedPolicy):
    cdef readonly uint32_t frames
    cdef uint32_t waiting


cdef class OpenMx(TimedPolicy):
    pass


cdef class Stream(TimedPolicy):
    cdef bint deferred
    cdef int64_t put_off_ns          # the first mark not reported; NEVER_NS: there is none

    cdef void measure_deferral(self, int64_t now_ns) noexcept nogil


# -- The polling watchdog: interrupts for what the host does not poll in time.

cdef class PollingWatchdog(Timeout):
    cdef ring *rx                    # NULL: it is not told what the host polls
    cdef const uint32_t *handled


# -- Adapter from the firmware to a coalescing policy written in Python.

cdef class PythonPolicy(CoalescingPolicy):
    cdef readonly object policy
    cdef double dilation

    cdef int64_t emulated_ns(self, int64_t now_ns) noexcept nogil
    cdef Cause cause_of(self, object answer, Cause plain, str method) except *
    cdef int read_deadline(self) except -1
    cdef void fail(self, object error) noexcept
