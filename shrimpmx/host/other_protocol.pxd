"""The handler of the other protocol: stands for the IP stack of the host.

It takes a packet and counts it, and how long the packet has waited in host memory, which is what
coalescing does to it; it answers one whose sender waits for that. Inline: it is called for what
frame_check has found not to be MXoE.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.host.endpoint cimport TransmitPort, transmit_commit, transmit_prepare
from shrimpmx.shared.layout cimport (
    COUNTER_recv_other, COUNTER_recv_other_bytes, COUNTER_recv_other_delay_ns,
)
from shrimpmx.wire.other_packet cimport is_other_packet, other_answer, other_is_answered, wire_other


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


cdef inline bint answer_other(TransmitPort *port, const uint8_t *frame) noexcept nogil:
    """Answer a packet that was taken, if its sender waits for that; whether it is on its way. With
    a full tx ring it is not: the answer to a later packet stands for it.
    """
    cdef uint8_t *answer
    if not other_is_answered(frame):
        return False
    # By the source's last bytes, a node's index (node_address).
    answer = transmit_prepare(port, <uint32_t>frame[10] << 8 | frame[11])
    if answer == NULL:
        return False
    other_answer(answer, frame)
    transmit_commit(port, sizeof(wire_other))
    return True
