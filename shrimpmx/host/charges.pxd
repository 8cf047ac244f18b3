"""What interrupts and frames cost an emulated host beside this one's own time.

An agent that pays says until when it works (`busy_until_ns`); its runner burns the time.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, cost_meter, pay, pay_copy, pay_lines
from shrimpmx.costs.rows cimport (
    COST_cold_packet_ns, COST_handler_poll_ns, COST_handover_ns, COST_interrupt_time_ns,
    COST_packet_cost_ns,
)
from shrimpmx.shared.layout cimport (
    CORE_PENDING_SENT, EVENT_RING_RESET, endpoint_descriptor, frame_slot, node_endpoint,
    node_header, node_vector,
)
from shrimpmx.wire.wire cimport PTYPE_PULL_REPLY, WIRE_HEAD_BYTES, WIRE_MARK, frame_endpoint

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil


cdef inline bint charges_frames(Prices prices) noexcept:
    """Whether who polls a ring pays for frames, or for the poll."""
    if prices is None:
        return False
    return (prices.list.ns[COST_packet_cost_ns] != 0
            or prices.list.ns[COST_handover_ns] != 0
            or prices.list.ns[COST_cold_packet_ns] != 0
            or prices.list.ns[COST_handler_poll_ns] != 0
            or prices.list.copy_byte_ns != 0 or prices.has_lines())


cdef inline int64_t pay_frame(const cost_meter *meter, node_header *node, uint32_t core,
                              bint offloads, const frame_slot *slot) noexcept nogil:
    """What `core`, its number + 1, pays for a frame: its handling, the copy of its bytes, and the
    lines of its endpoint, its pull, and the event where the process resets that. `offloads`: a
    dma agent copies what a pull brings.
    """
    cdef int64_t cost_ns = pay(meter, COST_packet_cost_ns)
    cdef int endpoint = frame_endpoint(slot.frame, slot.length)
    cdef bint pulled
    cdef const endpoint_descriptor *descriptor
    if endpoint < 0 or <uint32_t>endpoint >= node.endpoints_count:
        return cost_ns  # it will be dropped
    descriptor = node_endpoint(node, endpoint)
    pulled = slot.frame[WIRE_HEAD_BYTES] & ~WIRE_MARK == PTYPE_PULL_REPLY
    if not (pulled and offloads):
        cost_ns += pay_copy(meter, slot.length)
    cost_ns += pay_lines(meter, descriptor.last_core, core, 2 if pulled else 1)
    if descriptor.last_core != 0 and descriptor.last_core != core:
        cost_ns += pay(meter, COST_handover_ns)
    if descriptor.ring_kind == EVENT_RING_RESET and not pulled:
        cost_ns += pay_lines(meter, descriptor.process_core, core)
    return cost_ns


cdef inline int64_t interrupts_began_ns(node_header *node, uint64_t raised,
                                        int64_t now_ns) noexcept nogil:
    """When the first of those in `raised`, vectors and CORE_PENDING_SENT, was raised; now, if none
    was."""
    cdef int64_t began_ns = now_ns
    if raised & CORE_PENDING_SENT:
        began_ns = min(began_ns, node.sent.raised_ns)
        raised &= ~CORE_PENDING_SENT
    while raised != 0:
        began_ns = min(began_ns, node_vector(node, __builtin_ctzll(raised)).raised_ns)
        raised &= raised - 1
    return began_ns


cdef inline int64_t interrupts_end_ns(const cost_meter *meter, int64_t began_ns, uint32_t count,
                                      int64_t occupancy_ns, int64_t now_ns) noexcept nogil:
    """When `count` interrupts are over, of which the first began then. Each takes its time from
    then on, or, with an occupancy, the first is delivered in what is beside that, and each takes
    its handler that from when it is ready."""
    cdef int64_t cost_ns = pay(meter, COST_interrupt_time_ns, count)
    if occupancy_ns == 0:
        return began_ns + cost_ns
    return <int64_t>count * occupancy_ns + max(
        now_ns, began_ns + meter.prices.ns[COST_interrupt_time_ns] - occupancy_ns)
