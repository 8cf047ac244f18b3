"""The polling watchdog: interrupts for what the host does not poll in time."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_slot
from shrimpmx.nic.coalescing cimport CAUSE_NONE, Cause
from shrimpmx.nic.strategies cimport Timeout
from shrimpmx.shared.layout cimport frame_slot


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
