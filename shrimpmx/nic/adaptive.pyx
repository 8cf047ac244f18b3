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
from shrimpmx.nic.coalescing cimport (
    CAUSE_MARKED, CAUSE_NONE, CAUSE_PACKET, CAUSE_SENT, CAUSE_TIMEOUT, Cause, CoalescingPolicy,
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
