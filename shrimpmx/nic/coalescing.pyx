"""When the NIC wishes to raise an interrupt: the interface of every coalescing policy.

A policy is a pure object. The firmware tells it what happened and when, in order of time; it
answers with a cause to raise an interrupt, or CAUSE_NONE, and keeps one timer in
`deadline_ns`. What becomes of the wish is the firmware's business: the interrupt may have to
wait for the claim token, or find that the handler has taken all packets already.
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring

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

    def send_complete(self, int64_t now_ns):
        """Call on_send_complete; returns the cause's name."""
        return CAUSE_NAMES[self.on_send_complete(now_ns)]

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
