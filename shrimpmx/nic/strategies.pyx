"""Coalescing policies: the interface, the four strategies of the coalescing paper (section III,
Algorithms 1 and 2), the polling watchdog, and the adapter to a policy in Python.

"Create packet Descriptor", "Mark packet Descriptor" and "Submit DMA" of the algorithms are
the firmware's part and the same for all: a completed DMA brings its mark along.

The paper does not say what arms the coalescing timer. Here the first packet in host memory
that has not been reported does, unless it is to run freely: so no packet waits longer than the
delay.
"""

from libc.math cimport ceil, llround
from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_slot
from shrimpmx.shared.layout cimport frame_slot

from shrimpmx.errors import InputError


# -- When the NIC wishes to raise an interrupt: the interface of every coalescing policy.
#
# A policy is a pure object. The firmware tells it what happened and when, in order of time; it
# answers with a cause to raise an interrupt, or CAUSE_NONE, and keeps one timer in
# `deadline_ns`. What becomes of the wish is the firmware's business: the interrupt may have to
# wait for the claim token, or find that the handler has taken all packets already.

CAUSE_NAMES = ("none", "packet", "marked", "deferred", "timeout", "frames", "sent")


cdef class CoalescingPolicy:
    """Base of every policy; it never raises. Methods without `on_` are for tests."""

    def __cinit__(self, *args, **kwargs):
        self.deadline_ns = NEVER_NS
        self.failure = None

    @classmethod
    def from_parameters(cls, nic, double dilation=1.0):
        """A policy with the settings of `nic` (NicParameters), whose times are dilated already.

        `dilation` is how much longer times are here than those that a policy brings along itself.
        """
        return cls()

    cdef void use_ring(self, ring *frames, const uint32_t *handled) noexcept:
        """The rx ring that is reported on, and how far the host has come in it; told once, before
        the first packet, for policies that go by what the host has taken."""
        pass

    cdef void on_arrival(self, int64_t now_ns, bint marked,
                         uint32_t length_bytes) noexcept nogil:
        """A packet arrived; its DMA to host memory is submitted."""
        pass

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        """A packet is in host memory; `dma_pending` others are on their way there."""
        return CAUSE_NONE

    cdef Cause on_send_complete(self, int64_t now_ns) noexcept nogil:
        """A frame was sent; told where completed sends interrupt, of the first rx queue's policy.
        """
        return CAUSE_NONE

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        """`deadline_ns` has come. The policy must move it on."""
        self.deadline_ns = NEVER_NS
        return CAUSE_NONE

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        """All packets in host memory and completed sends have been reported: an interrupt was
        delivered, or the handler took them by itself before it could be."""
        pass

    def arrival(self, int64_t now_ns, bint marked, uint32_t length_bytes=60):
        """Call on_arrival."""
        self.on_arrival(now_ns, marked, length_bytes)

    def dma_complete(self, int64_t now_ns, bint marked, uint32_t dma_pending):
        """Call on_dma_complete; returns the cause's name."""
        return CAUSE_NAMES[self.on_dma_complete(now_ns, marked, dma_pending)]

    def deadline(self, int64_t now_ns):
        """Call on_deadline; returns the cause's name."""
        return CAUSE_NAMES[self.on_deadline(now_ns)]

    def raised(self, int64_t now_ns, str cause not None):
        """Call on_raised with a cause by name."""
        self.on_raised(now_ns, <Cause><int>CAUSE_NAMES.index(cause))

    @property
    def due_ns(self):
        """When the timer expires, ns; None if it is off."""
        return None if self.deadline_ns == NEVER_NS else self.deadline_ns

    @property
    def deferrals_count(self):
        """Marked packets whose interrupt was deferred."""
        return self.deferrals

    @property
    def deferred_longest_ns(self):
        """The longest time for which a marked packet's interrupt was put off, ns."""
        return self.longest_deferral_ns


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

    Wins when packets come in streams and no receiver waits for a single packet.

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


# -- The polling watchdog: interrupts for what the host does not poll in time.

cdef class PollingWatchdog(Timeout):
    """An interrupt only if packets have not been polled within the delay.

    The ranks poll the rx ring. The first packet in host memory starts the timer. When it runs
    out, and only then, the NIC looks how far the ring has been polled. With nothing left the
    timer stops, until the next packet. Else it goes by the oldest packet that is left: an
    interrupt if that one has waited for the whole delay, or the rest of its delay. So no packet is
    reported before its own delay is over, and none later.

    Source: Maquelin, Gao, Hum, Theobald and Tian, "Polling watchdog", ISCA 1996.

    Wins when ranks look for messages most of the time and now and then compute for long.

    Args:
        delay_ns: how long a packet may wait to be polled.
    """

    def __init__(self, int64_t delay_ns):
        Timeout.__init__(self, delay_ns)

    @classmethod
    def from_parameters(cls, nic, double dilation=1.0):
        return cls(1000 * nic.rx_usecs)

    cdef void use_ring(self, ring *frames, const uint32_t *handled) noexcept:
        self.rx = frames
        self.handled = handled

    cdef Cause on_send_complete(self, int64_t now_ns) noexcept nogil:
        return CAUSE_NONE  # nobody polls for it: the next interrupt reports it

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t position
        cdef int64_t due_ns
        if self.rx != NULL:
            position = load_acquire_u32(self.handled)
            if position == self.rx.reserved:
                self.deadline_ns = NEVER_NS
                return CAUSE_NONE
            # Only this NIC writes slots that are not handed back, so the time is good even if the
            # packet is polled meanwhile; the interrupt line then finds nothing to report.
            due_ns = (<frame_slot *>ring_slot(self.rx, position)).time_ns + self.delay_ns
            if due_ns > now_ns:
                self.deadline_ns = due_ns
                return CAUSE_NONE
        return Timeout.on_deadline(self, now_ns)


# -- Adapter from the firmware to a coalescing policy written in Python.
#
# Each call takes the GIL. The first exception is kept in `failure`; after it the user's
# code is not called any more, and the firmware's runner ends the run.

cdef class PythonPolicy(CoalescingPolicy):
    """Makes a `shrimpmx.nic.policy.Policy` a policy of the firmware.

    The user's times are those of the emulated hosts: the run's clock by `dilation`.
    """

    def __init__(self, policy not None, double dilation=1.0):
        self.policy = policy
        self.dilation = dilation
        self.read_deadline()

    cdef int64_t emulated_ns(self, int64_t now_ns) noexcept nogil:
        return now_ns if self.dilation == 1 else llround(now_ns / self.dilation)

    cdef void on_arrival(self, int64_t now_ns, bint marked,
                         uint32_t length_bytes) noexcept nogil:
        if self.failed:
            return
        with gil:
            try:
                self.policy.on_arrival(self.emulated_ns(now_ns), bool(marked), length_bytes)
                self.read_deadline()
            except BaseException as error:
                self.fail(error)

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        cdef Cause cause = CAUSE_NONE
        if self.failed:
            return CAUSE_NONE
        with gil:
            try:
                answer = self.policy.on_dma_complete(
                    self.emulated_ns(now_ns), bool(marked), dma_pending
                )
                cause = self.cause_of(answer, CAUSE_PACKET, "on_dma_complete")
                self.read_deadline()
            except BaseException as error:
                self.fail(error)
        return cause

    cdef Cause on_send_complete(self, int64_t now_ns) noexcept nogil:
        cdef Cause cause = CAUSE_NONE
        if self.failed:
            return CAUSE_NONE
        with gil:
            try:
                answer = self.policy.on_send_complete(self.emulated_ns(now_ns))
                cause = self.cause_of(answer, CAUSE_SENT, "on_send_complete")
                self.read_deadline()
            except BaseException as error:
                self.fail(error)
        return cause

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        cdef Cause cause = CAUSE_NONE
        self.deadline_ns = NEVER_NS
        if self.failed:
            return CAUSE_NONE
        with gil:
            try:
                self.policy.deadline_ns = None
                answer = self.policy.on_deadline(self.emulated_ns(now_ns))
                cause = self.cause_of(answer, CAUSE_TIMEOUT, "on_deadline")
                self.read_deadline()
                if self.deadline_ns <= now_ns:  # it would be called for ever at this same time
                    raise InputError(
                        f"{type(self.policy).__name__}.on_deadline left deadline_ns at "
                        f"{self.policy.deadline_ns!r}, which is not later than the deadline just "
                        f"reached, {self.emulated_ns(now_ns)}: set it to a later time, or to None"
                    )
            except BaseException as error:
                self.fail(error)
        return cause

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        if self.failed:
            return
        with gil:
            try:
                self.policy.on_raised(self.emulated_ns(now_ns), CAUSE_NAMES[<int>cause])
                self.read_deadline()
            except BaseException as error:
                self.fail(error)

    cdef Cause cause_of(self, object answer, Cause plain, str method) except *:
        """The cause that the answer of a policy's method means; `plain` is that of True."""
        if answer is None or answer is False:
            return CAUSE_NONE
        if answer is True:
            return plain
        if isinstance(answer, str) and answer in CAUSE_NAMES:
            return <Cause><int>CAUSE_NAMES.index(answer)
        raise InputError(
            f"{type(self.policy).__name__}.{method} returned {answer!r}; it must return True, "
            f"False, None or a cause: {', '.join(map(repr, CAUSE_NAMES))}"
        )

    cdef int read_deadline(self) except -1:
        cdef object deadline = self.policy.deadline_ns
        if deadline is None:
            self.deadline_ns = NEVER_NS
            return 0
        try:
            self.deadline_ns = deadline
        except (TypeError, ValueError, OverflowError):
            self.deadline_ns = -1
        if self.deadline_ns < 0:
            raise InputError(
                f"{type(self.policy).__name__}.deadline_ns is {deadline!r}; it must be a time in "
                "ns from 0 on, or None"
            )
        # Rounded up, a deadline is not before the time that the policy has set.
        if self.dilation != 1 and self.deadline_ns < NEVER_NS / self.dilation:
            self.deadline_ns = <int64_t>ceil(self.deadline_ns * self.dilation)
        return 0

    cdef void fail(self, object error) noexcept:
        self.failure = error
        self.failed = True
        self.deadline_ns = NEVER_NS
