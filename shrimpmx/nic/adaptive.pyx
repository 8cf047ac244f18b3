"""Coalescing that adapts its interrupt rate to the traffic, as Intel's drivers do.

The interrupt throttle rate (ITR) of e1000e. At each report, an interrupt or packets that the
handler took by itself, the packets and bytes since the last one put the traffic into a class:

    class     interrupts/s   next class
    lowest          70 000   bulk: bytes/packet > 8000
                             low: packets < 5 and bytes > 512
    low             20 000   with bytes > 10 000
                               bulk: bytes/packet > 1200, or packets < 10
                               lowest: packets > 35
                             else
                               bulk: bytes/packet > 2000
                               lowest: packets <= 2 and bytes < 512
    bulk             4 000   with bytes > 25 000, low: packets > 35
                             else, low: bytes < 6000

The rate in force goes down to that of the class at once, and up by a quarter of it each time.
The driver takes the slower class of receiving and sending, and sets the interval in steps of
256 ns; here only receiving counts, and the interval is exact. The class to begin with is ours.
Packets are counted as they arrive, since that is when their length is known.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.nic.strategies cimport (
    CAUSE_FRAMES, CAUSE_MARKED, CAUSE_NONE, CAUSE_PACKET, CAUSE_SENT, CAUSE_TIMEOUT, Cause,
    CoalescingPolicy,
)


CLASS_NAMES = ("lowest", "low", "bulk")


cdef uint32_t rate_of(LatencyClass traffic) noexcept nogil:
    """Interrupts per second of a class (e1000e)."""
    if traffic == LOWEST_LATENCY:
        return 70_000
    return 20_000 if traffic == LOW_LATENCY else 4_000


cdef LatencyClass class_after(LatencyClass traffic, uint32_t packets,
                              uint64_t bytes) noexcept nogil:
    """The class of traffic that was in class `traffic` before; the table above."""
    cdef uint64_t each
    if packets == 0:
        return traffic
    each = bytes // packets
    if traffic == LOWEST_LATENCY:
        if each > 8000:
            return BULK
        return LOW_LATENCY if packets < 5 and bytes > 512 else LOWEST_LATENCY
    if traffic == BULK:
        if bytes > 25_000:
            return LOW_LATENCY if packets > 35 else BULK
        return LOW_LATENCY if bytes < 6000 else BULK
    if bytes > 10_000:
        if each > 1200 or packets < 10:
            return BULK
        return LOWEST_LATENCY if packets > 35 else LOW_LATENCY
    if each > 2000:
        return BULK
    return LOWEST_LATENCY if packets <= 2 and bytes < 512 else LOW_LATENCY


cdef class AdaptiveRate(CoalescingPolicy):
    """An interrupt rate by the traffic of late: at once after a pause, else when its turn is.

    A packet raises at once if the interval since the last interrupt is over, else the timer
    is set to when it is.

    Source: Intel's adaptive interrupt moderation (Linux, e1000e). It needs no `rx_usecs`.

    Wins when nothing is marked and the traffic changes between single packets and streams.

    Args:
        conservative: never use class lowest (the driver's mode 3).
        dilation: the rates are those of hardware; times here are longer by this.
    """

    def __init__(self, bint conservative=False, double dilation=1.0):
        self.conservative = conservative
        self.dilation = dilation
        self.traffic = LOW_LATENCY
        self.use_rate(rate_of(LOW_LATENCY))

    @classmethod
    def from_parameters(cls, nic, double dilation=1.0):
        return cls(nic.adaptive_conservative, dilation)

    cdef void on_arrival(self, int64_t now_ns, bint marked,
                         uint32_t length_bytes) noexcept nogil:
        self.packets += 1
        self.bytes += length_bytes

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        return self.wish(now_ns, CAUSE_PACKET)

    cdef Cause on_send_complete(self, int64_t now_ns) noexcept nogil:
        return self.wish(now_ns, CAUSE_SENT)

    cdef Cause wish(self, int64_t now_ns, Cause cause) noexcept nogil:
        """An interrupt at once, or when its turn is."""
        if now_ns >= self.open_ns:
            return cause
        self.deadline_ns = self.open_ns
        return CAUSE_NONE

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        self.deadline_ns = NEVER_NS
        return CAUSE_TIMEOUT

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        self.adapt()
        self.deadline_ns = NEVER_NS
        self.open_ns = now_ns + self.interval_ns

    cdef void adapt(self) noexcept nogil:
        """Class and rate by what came since the last report."""
        cdef uint32_t target
        self.traffic = class_after(self.traffic, self.packets, self.bytes)
        self.packets = 0
        self.bytes = 0
        if self.conservative and self.traffic == LOWEST_LATENCY:
            self.traffic = LOW_LATENCY
        target = rate_of(self.traffic)
        self.use_rate(min(target, self.rate + target // 4))

    cdef void use_rate(self, uint32_t rate) noexcept nogil:
        self.rate = rate
        self.interval_ns = <int64_t>(self.dilation * 1e9 / rate)

    @property
    def latency_class(self):
        """The class that the traffic is in: lowest, low or bulk."""
        return CLASS_NAMES[<int>self.traffic]


cdef class MarksAdaptive(AdaptiveRate):
    """A marked packet is reported at once; the others as under `AdaptiveRate`.

    An interrupt for a mark counts like any other: the interval begins anew with it.

    Source: the future work of the coalescing paper (VI): Algorithm 1 with the timeout replaced.

    Wins when marked messages and other traffic share the NIC, and no one delay suits the latter.
    """

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        if marked:
            return CAUSE_MARKED
        return AdaptiveRate.on_dma_complete(self, now_ns, marked, dma_pending)


# -- Dynamic interrupt moderation: net_dim of Linux.
#
# Every 64 interrupts the traffic since the last decision is compared with that before it, and the
# profile, a delay and a packet limit, goes one step on in the direction that pays. The search
#
#     parked on top    until the traffic changes; then it leaves: to the left, from profile 0
#                      to the right
#     parked tired     for as many decisions as it had made steps; then it leaves
#     going left or    turns if the last step was not for the better; then parks on top if it has
#     going right      just come back one step from beyond the top, or has no profile left; parks
#                      tired after 10 steps; else makes a step
#
# What is better: more bytes, if they differ by more than 10 % of before; else more packets, if
# these do; else fewer interrupts. While parked on top the traffic is compared with that at which it
# parked, so that a slow drift is seen too.
#
# After a step the measurement begins with the next interrupt; the driver's work queue, which
# applies the profile later still, is left out.

# (delay in us, packets) of each profile for receiving (Linux, lib/dim/net_dim.c).
EQE_PROFILES = ((1, 256), (8, 256), (64, 256), (128, 256), (256, 256))
CQE_PROFILES = ((2, 256), (8, 128), (16, 64), (32, 64), (64, 64))

STATE_NAMES = ("parked-on-top", "parked-tired", "going-right", "going-left")

cdef enum Change:
    SAME = 0
    BETTER = 1
    WORSE = 2


cdef Change change_of(uint64_t now, uint64_t before) noexcept nogil:
    """How a rate of which more is better has changed."""
    cdef uint64_t difference = now - before if now > before else before - now
    if before == 0:
        return BETTER if now > 0 else SAME
    if 100 * difference // before <= DIM_SIGNIFICANT_PERCENT:
        return SAME
    return BETTER if now > before else WORSE


cdef Change compared(const dim_rates *now, const dim_rates *before) noexcept nogil:
    """The first of bytes, packets and interrupts that has changed decides."""
    cdef Change change = change_of(now.bytes, before.bytes)
    if change != SAME or before.bytes == 0:
        return change
    change = change_of(now.packets, before.packets)
    if change != SAME or before.packets == 0:
        return change
    change = change_of(now.events, before.events)
    if change == SAME:
        return SAME
    return WORSE if change == BETTER else BETTER   # fewer interrupts are better


cdef uint64_t per_ms(uint64_t count, uint64_t elapsed_us) noexcept nogil:
    return (count * 1000 + elapsed_us - 1) // elapsed_us


cdef class DimDecision:
    """The search for the best profile.

    Args:
        dilation: times are longer by this than those that the rates are meant in.
    """

    def __init__(self, double dilation=1.0):
        self.dilation = dilation
        self.profile = DIM_START_PROFILE

    def feed(self, uint64_t bytes, uint64_t packets, uint64_t events, int64_t now_ns):
        """Tell the totals after an interrupt; returns the profile's index from now on."""
        cdef dim_sample now
        now.bytes, now.packets, now.events, now.time_ns = bytes, packets, events, now_ns
        return self.count(&now)

    @property
    def state(self):
        """Where the search stands: parked-on-top, parked-tired, going-right or going-left."""
        return STATE_NAMES[<int>self.search]

    cdef uint32_t count(self, const dim_sample *now) noexcept nogil:
        cdef uint32_t before = self.profile
        cdef dim_rates rates
        if self.measuring:
            if now.events - self.start.events < DIM_EVENTS or not self.rates_until(now, &rates):
                return self.profile
            self.decide(&rates)
            if self.profile != before:
                self.measuring = False
                return self.profile
        self.start = now[0]
        self.measuring = True
        return self.profile

    cdef bint rates_until(self, const dim_sample *now, dim_rates *rates) noexcept nogil:
        """The rates since the measurement began; false if no time has passed."""
        cdef int64_t elapsed_us = <int64_t>(
            (now.time_ns - self.start.time_ns) / (1000 * self.dilation))
        if elapsed_us <= 0:
            return False
        rates.bytes = per_ms(now.bytes - self.start.bytes, elapsed_us)
        rates.packets = per_ms(now.packets - self.start.packets, elapsed_us)
        rates.events = per_ms(DIM_EVENTS, elapsed_us)
        return True

    cdef void decide(self, const dim_rates *now) noexcept nogil:
        cdef bint was_on_top = self.search == DIM_PARKED_ON_TOP
        if self.search == DIM_PARKED_TIRED:
            self.tired -= 1
            if self.tired == 0:
                self.leave_parking()
        elif not was_on_top:
            self.go_on(compared(now, &self.previous) == BETTER)
        elif compared(now, &self.previous) != SAME:
            self.leave_parking()
        if not was_on_top or self.search != DIM_PARKED_ON_TOP:
            self.previous = now[0]

    cdef void go_on(self, bint better) noexcept nogil:
        if not better:
            self.turn()
        if self.just_past_the_top():
            self.park(DIM_PARKED_ON_TOP)
        elif self.tired == DIM_TIRED:
            self.park(DIM_PARKED_TIRED)
        elif self.at_the_edge():
            self.park(DIM_PARKED_ON_TOP)
        else:
            self.step()

    cdef void leave_parking(self) noexcept nogil:
        self.search = DIM_GOING_LEFT if self.profile > 0 else DIM_GOING_RIGHT
        self.step()

    cdef void turn(self) noexcept nogil:
        if self.search == DIM_GOING_RIGHT:
            self.search = DIM_GOING_LEFT
            self.steps_left = 0
        else:
            self.search = DIM_GOING_RIGHT
            self.steps_right = 0

    cdef bint just_past_the_top(self) noexcept nogil:
        if self.search == DIM_GOING_RIGHT:
            return self.steps_left > 1 and self.steps_right == 1
        return self.steps_right > 1 and self.steps_left == 1

    cdef bint at_the_edge(self) noexcept nogil:
        if self.search == DIM_GOING_RIGHT:
            return self.profile == DIM_PROFILES - 1
        return self.profile == 0

    cdef void step(self) noexcept nogil:
        if self.search == DIM_GOING_RIGHT:
            self.profile += 1
            self.steps_right += 1
        else:
            self.profile -= 1
            self.steps_left += 1
        self.tired += 1

    cdef void park(self, DimState state) noexcept nogil:
        self.search = state
        self.steps_left = 0
        self.steps_right = 0
        if state == DIM_PARKED_ON_TOP:
            self.tired = 0


cdef class Dim(CoalescingPolicy):
    """A delay and a packet limit that search for the most traffic with the fewest interrupts.

    The timer starts at the first packet since the last interrupt (EQE mode). Each report counts
    as an interrupt, also packets that the handler took by itself. Packets are counted as they
    arrive, since that is when their length is known.

    Source: dynamic interrupt moderation (Linux, lib/dim). It needs no `rx_usecs`.

    Wins when traffic is steady over hundreds of interrupts, and the right delay is unknown.

    Args:
        dilation: the profiles are those of hardware; times here are longer by this.
    """

    def __init__(self, double dilation=1.0):
        self.set_profiles(EQE_PROFILES, dilation)

    @classmethod
    def from_parameters(cls, nic, double dilation=1.0):
        return cls(dilation)

    def set_profiles(self, profiles, double dilation):
        """Begin the search among these (delay in us, packets)."""
        cdef int index
        for index in range(DIM_PROFILES):
            self.delays_ns[index] = round(1000 * profiles[index][0] * dilation)
            self.limits[index] = profiles[index][1]
        self.decision = DimDecision(dilation)
        self.use_profile(self.decision.profile)

    cdef void use_profile(self, uint32_t profile) noexcept nogil:
        self.delay_ns = self.delays_ns[profile]
        self.frames = self.limits[profile]

    cdef void on_arrival(self, int64_t now_ns, bint marked,
                         uint32_t length_bytes) noexcept nogil:
        self.totals.packets += 1
        self.totals.bytes += length_bytes

    cdef Cause on_dma_complete(self, int64_t now_ns, bint marked,
                               uint32_t dma_pending) noexcept nogil:
        if self.restarts or self.deadline_ns == NEVER_NS:
            self.deadline_ns = now_ns + self.delay_ns
        self.waiting += 1
        return CAUSE_FRAMES if self.waiting >= self.frames else CAUSE_NONE

    cdef Cause on_send_complete(self, int64_t now_ns) noexcept nogil:
        if self.deadline_ns == NEVER_NS:
            self.deadline_ns = now_ns + self.delay_ns
        return CAUSE_NONE

    cdef Cause on_deadline(self, int64_t now_ns) noexcept nogil:
        self.deadline_ns = NEVER_NS
        return CAUSE_TIMEOUT

    cdef void on_raised(self, int64_t now_ns, Cause cause) noexcept nogil:
        self.waiting = 0
        self.deadline_ns = NEVER_NS
        self.totals.events += 1
        self.totals.time_ns = now_ns
        self.use_profile(self.decision.count(&self.totals))


cdef class DimCqe(Dim):
    """As `Dim`, but each packet starts the timer anew (CQE mode).

    A packet of a stream without gaps waits for the packet limit; the last one of a burst for
    the delay.

    Source: dynamic interrupt moderation (Linux, lib/dim). It needs no `rx_usecs`.

    Wins when packets come in bursts: one interrupt at a burst's end.
    """

    def __init__(self, double dilation=1.0):
        self.set_profiles(CQE_PROFILES, dilation)
        self.restarts = True
