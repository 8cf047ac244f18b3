"""The four coalescing strategies of the coalescing paper (section III, Algorithms 1 and 2).

"Create packet Descriptor", "Mark packet Descriptor" and "Submit DMA" of the algorithms are
the firmware's part and the same for all: a completed DMA brings its mark along.

The paper does not say what arms the coalescing timer. Here the first packet in host memory
that has not been reported does: so no packet waits longer than the delay.
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.nic.coalescing cimport (
    CAUSE_DEFERRED,
    CAUSE_FRAMES,
    CAUSE_MARKED,
    CAUSE_NONE,
    CAUSE_PACKET,
    CAUSE_TIMEOUT,
    Cause,
    CoalescingPolicy,
)


cdef class Disabled(CoalescingPolicy):
    """An interrupt for each packet: least latency, most interrupts."""

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        return CAUSE_PACKET


cdef class TimedPolicy(CoalescingPolicy):
    """What the other strategies share: the coalescing timer.

    Args:
        delay_ns: the coalescing delay (rx-usecs).
        mark_resets_timer: whether an interrupt raised for a mark also stops the timer. If
            not, the pseudocode is taken literally: only the timeout resets the timer, and
            a timeout can find nothing left to report.
    """

    def __init__(self, int64_t delay_ns, bint mark_resets_timer=True):
        self.delay_ns = delay_ns
        self.mark_resets_timer = mark_resets_timer

    cdef void arm(self, int64_t now_ns) noexcept nogil:
        if self.deadline_ns == NEVER_NS:
            self.deadline_ns = now_ns + self.delay_ns

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        self.deadline_ns = NEVER_NS   # "Reset coalescing timeout"
        return CAUSE_TIMEOUT          # "Raise Interrupt"

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        if self.mark_resets_timer or (cause != CAUSE_MARKED and cause != CAUSE_DEFERRED):
            self.deadline_ns = NEVER_NS


cdef class Timeout(TimedPolicy):
    """The usual coalescing of Ethernet NICs: after a delay, or after so many packets.

    Args:
        delay_ns: rx-usecs; 0 for no time limit (as `ethtool -C` has it).
        frames: rx-frames; 0 for no limit.
    """

    def __init__(self, int64_t delay_ns, uint32_t frames=0):
        TimedPolicy.__init__(self, delay_ns)
        self.frames = frames

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        if self.delay_ns > 0:
            self.arm(now_ns)
        self.waiting += 1
        return CAUSE_FRAMES if self.frames != 0 and self.waiting >= self.frames else CAUSE_NONE

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        self.waiting = 0
        self.deadline_ns = NEVER_NS


cdef class OpenMx(TimedPolicy):
    """Algorithm 1: a marked packet is reported at once, the others after the delay."""

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        self.arm(now_ns)
        if marked:                    # "if Descriptor is Marked then"
            return CAUSE_MARKED       # "Raise Interrupt"
        return CAUSE_NONE


cdef class Stream(TimedPolicy):
    """Algorithm 2: a mark's interrupt is deferred while other packets are on their way."""

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        cdef bint was_deferred = self.deferred
        self.arm(now_ns)
        if dma_pending == 0:          # "if no other DMA is pending then"
            if marked or was_deferred:   # "Marked or DeferredInterrupt is set"
                self.deferred = False    # "Clear DeferredInterrupt"
                return CAUSE_DEFERRED if was_deferred else CAUSE_MARKED
        elif marked:                  # "else if Descriptor is Marked then"
            self.deferred = True      # "Set DeferredInterrupt"
            self.deferrals += 1
        return CAUSE_NONE

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        self.deferred = False         # "Clear DeferredInterrupt"
        return TimedPolicy.on_deadline(self, now_ns)

    @property
    def interrupt_deferred(self):
        """The paper's DeferredInterrupt flag."""
        return self.deferred
