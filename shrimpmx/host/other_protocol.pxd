"""The handler of the other protocol: stands for the IP stack of the host.

It takes a packet and counts it, and how long the packet has waited in host memory, which is what
coalescing does to it. Inline: it is called for what frame_check has found not to be MXoE.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport (
    COUNTER_recv_other, COUNTER_recv_other_bytes, COUNTER_recv_other_delay_ns,
)
from shrimpmx.wire.other_packet cimport is_other_packet


cdef inline bint other_packet(uint64_t *counters, const uint8_t *frame, uint32_t length,
                              int64_t waited_ns) noexcept nogil:
    """Take a frame that is not MXoE, if it is one of ours; false: it is to be dropped.

    `waited_ns` below 0, of a frame that came after the step began, counts as 0.
    """
    if not is_other_packet(frame, length):
        return False
    counters[COUNTER_recv_other] += 1
    counters[COUNTER_recv_other_bytes] += length
    if waited_ns > 0:
        counters[COUNTER_recv_other_delay_ns] += <uint64_t>waited_ns
    return True
