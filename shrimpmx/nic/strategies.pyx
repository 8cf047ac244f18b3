"""The four coalescing strategies of the coalescing paper (section III, Algorithms 1 and 2).

"Create packet Descriptor", "Mark packet Descriptor" and "Submit DMA" of the algorithms are
the firmware's part and the same for all: a completed DMA brings its mark along.

The paper does not say what arms the coalescing timer. Here the first packet in host memory
that has not been reported does, unless it is to run freely: so no packet waits longer than the
delay.
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.nic.coalescing cimport (
    CAUSE_DEFERRED, CAUSE_FRAMES, CAUSE_MARKED, CAUSE_NONE, CAUSE_PACKET, CAUSE_SENT,
    CAUSE_TIMEOUT, Cause, CoalescingPolicy,
)


cdef class Disabled(CoalescingPolicy):
    """An interrupt for each packet: least latency, most interrupts.

    Source: coalescing, II-A. Under `napi-defer` and `irq-suspend` the NIC does no more than
    this either: there the host leaves interrupts masked.

    Wins when packets are few and each is waited for.
    """

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        return CAUSE_PACKET

    cdef Cause on_send_complete(self, int64_t now_ns) noexcept nogil:
        return CAUSE_SENT


cdef class TimedPolicy(CoalescingPolicy):
    """What the other strategies share: the coalescing timer.

    Args:
        delay_ns: the coalescing delay (rx-usecs).
        mark_resets_timer: whether an interrupt raised for a mark also stops the timer. If
            not, the pseudocode is taken literally: only the timeout resets the timer, and
            a timeout can find nothing left to report.
        free_running: the timer expires each `delay_ns` since its last reset, whether or not
            packets wait, so that a packet waits for what is left of it. Only those expiries that
            have something to report are acted upon.
    """

    def __init__(self, int64_t delay_ns, bint mark_resets_timer=True, bint free_running=False):
        self.delay_ns = delay_ns
        self.mark_resets_timer = mark_resets_timer
        self.free_running = free_running

    @classmethod
    def from_parameters(cls, nic, double dilation=1.0):
        return cls(1000 * nic.rx_usecs, nic.mark_resets_timer, nic.rx_timer == "free-running")

    cpdef int use_clock(self, double phase, double drift) except -1:
        """Let a timer that runs freely begin at `phase` of its period, 0 to 1, by a clock that is
        slow by `drift`, a share of the time; before the first packet."""
        if self.free_running:
            self.delay_ns = round(self.delay_ns * (1 + drift))
            self.reset_ns = -round(self.delay_ns * phase)
        return 0

    cdef void arm(self, int64_t now_ns) noexcept nogil:
        if self.deadline_ns != NEVER_NS:
            return
        self.deadline_ns = now_ns + self.delay_ns
        # An interrupt for an earlier wish may be ahead of a frame that is published late.
        if self.free_running and now_ns > self.reset_ns:
            self.deadline_ns -= (now_ns - self.reset_ns) % self.delay_ns

    cdef Cause on_send_complete(self, int64_t now_ns) noexcept nogil:
        """It waits for the timer: no send is marked."""
        if self.delay_ns > 0:
            self.arm(now_ns)
        return CAUSE_NONE

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        self.deadline_ns = NEVER_NS   # "Reset coalescing timeout"
        self.reset_ns = now_ns
        return CAUSE_TIMEOUT          # "Raise Interrupt"

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        if self.mark_resets_timer or (cause != CAUSE_MARKED and cause != CAUSE_DEFERRED):
            self.reset_timer(now_ns, cause)

    cdef void reset_timer(self, int64_t now_ns, Cause cause) noexcept nogil:
        """All is reported; a timeout has reset the timer itself, when it came."""
        self.deadline_ns = NEVER_NS
        if cause != CAUSE_TIMEOUT:
            self.reset_ns = now_ns


cdef class Timeout(TimedPolicy):
    """The usual coalescing of Ethernet NICs: after a delay, or after so many packets.

    Source: coalescing, II-A; the two limits as `ethtool -C` has them.

    Wins when packets come in streams and no receiver waits for a single one.

    Args:
        delay_ns: rx-usecs; 0 for no time limit (as `ethtool -C` has it).
        frames: rx-frames; 0 for no limit.
        free_running: as of `TimedPolicy`.
    """

    def __init__(self, int64_t delay_ns, uint32_t frames=0, bint free_running=False):
        TimedPolicy.__init__(self, delay_ns, free_running=free_running)
        self.frames = frames

    @classmethod
    def from_parameters(cls, nic, double dilation=1.0):
        return cls(1000 * nic.rx_usecs, nic.rx_frames, nic.rx_timer == "free-running")

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        if self.delay_ns > 0:
            self.arm(now_ns)
        self.waiting += 1
        return CAUSE_FRAMES if self.frames != 0 and self.waiting >= self.frames else CAUSE_NONE

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        self.waiting = 0
        self.reset_timer(now_ns, cause)


cdef class OpenMx(TimedPolicy):
    """Algorithm 1: a marked packet is reported at once, the others after the delay.

    Source: coalescing, III-B.

    Wins when messages have many packets, or are waited for: only a message's last is marked.
    """

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        self.arm(now_ns)
        if marked:                    # "if Descriptor is Marked then"
            return CAUSE_MARKED       # "Raise Interrupt"
        return CAUSE_NONE


cdef class Stream(TimedPolicy):
    """Algorithm 2: a mark's interrupt is deferred while other packets are on their way.

    Source: coalescing, III-C.

    Wins when small messages come in streams: their marks share an interrupt.
    """

    def __cinit__(self, *args, **kwargs):
        self.put_off_ns = NEVER_NS

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        cdef bint was_deferred = self.deferred
        self.deferred_packets += was_deferred
        self.arm(now_ns)
        if dma_pending == 0:          # "if no other DMA is pending then"
            if marked or was_deferred:   # "Marked or DeferredInterrupt is set"
                self.deferred = False    # "Clear DeferredInterrupt"
                self.measure_deferral(now_ns)
                return CAUSE_DEFERRED if was_deferred else CAUSE_MARKED
        elif marked:                  # "else if Descriptor is Marked then"
            self.deferred = True      # "Set DeferredInterrupt"
            self.deferrals += 1
            self.put_off_ns = min(self.put_off_ns, now_ns)
        return CAUSE_NONE

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        self.deferred = False         # "Clear DeferredInterrupt"
        self.measure_deferral(now_ns)
        return TimedPolicy.on_deadline(self, now_ns)

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        # The interrupt of an earlier wish, that came late, reports these marks too.
        self.measure_deferral(now_ns)
        TimedPolicy.on_raised(self, now_ns, cause)

    cdef void measure_deferral(self, int64_t now_ns) noexcept nogil:
        """The marks put off so far are reported at `now_ns`."""
        if self.put_off_ns != NEVER_NS:
            self.longest_deferral_ns = max(self.longest_deferral_ns, now_ns - self.put_off_ns)
            self.put_off_ns = NEVER_NS

    @property
    def interrupt_deferred(self):
        """The paper's DeferredInterrupt flag."""
        return self.deferred
