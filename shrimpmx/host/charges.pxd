"""What an emulated host takes beside this one's own time, for interrupts and for frames.

An agent that pays says until when it works (`busy_until_ns`); its runner burns the time.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport (
    CORE_PENDING_SENT, EVENT_RING_RESET, endpoint_descriptor, frame_slot, node_endpoint,
    node_header, node_vector,
)
from shrimpmx.shared.prices cimport copy_price, host_prices, line_price
from shrimpmx.wire.frame_endpoint cimport frame_endpoint
from shrimpmx.wire.wire cimport PTYPE_PULL_REPLY, WIRE_HEAD_BYTES, WIRE_MARK

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil

cdef struct packet_charge:
    int64_t cost_ns          # added to what a frame takes, before it is handled
    const host_prices *prices  # ... and so is what its memory costs; NULL: nothing
    int64_t cold_ns          # ... and this, in a poll of a ring that another core polled last
    int64_t poll_ns          # the poll itself; 0: its first frame was charged with it
    int64_t until_ns         # the handler works for the next frame until then
    bint paid                # ... which is over at its next step


cdef inline bint packets_cost(const packet_charge *charge) noexcept nogil:
    """Whether frames are charged for."""
    return charge.cost_ns != 0 or charge.prices != NULL


cdef inline int64_t frame_price(const host_prices *prices, node_header *node, uint32_t core,
                                bint offloads, const frame_slot *slot) noexcept nogil:
    """What memory costs `core`, its number + 1, when it handles a frame: the copy of its bytes, and
    the lines of its endpoint, its pull, and the event where the process resets that. `offloads`: a
    dma agent copies what a pull brings.
    """
    cdef int endpoint = frame_endpoint(slot.frame, slot.length)
    cdef bint pulled
    cdef const endpoint_descriptor *descriptor
    cdef int64_t price_ns
    if endpoint < 0 or <uint32_t>endpoint >= node.endpoints_count:
        return 0  # it will be dropped
    descriptor = node_endpoint(node, endpoint)
    pulled = slot.frame[WIRE_HEAD_BYTES] & ~WIRE_MARK == PTYPE_PULL_REPLY
    price_ns = 0 if pulled and offloads else copy_price(prices, slot.length)
    price_ns += line_price(prices, descriptor.last_core, core) * (2 if pulled else 1)
    if descriptor.last_core != 0 and descriptor.last_core != core:
        price_ns += prices.handover_ns
    if descriptor.ring_kind == EVENT_RING_RESET and not pulled:
        price_ns += line_price(prices, descriptor.process_core, core)
    return price_ns


cdef inline bint packet_is_paid(packet_charge *charge, node_header *node, uint32_t core,
                                bint offloads, const frame_slot *slot,
                                int64_t now_ns) noexcept nogil:
    """Whether a frame may be handled now by `core`, its number + 1; if not, its time begins."""
    if charge.paid:
        charge.paid = False
        return True
    charge.paid = True
    charge.until_ns = now_ns + charge.cost_ns
    if charge.prices != NULL:
        charge.until_ns += charge.cold_ns + frame_price(charge.prices, node, core, offloads, slot)
        charge.until_ns += charge.poll_ns
        charge.poll_ns = 0
    return False


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


cdef inline int64_t interrupts_end_ns(int64_t began_ns, uint32_t count, int64_t interrupt_time_ns,
                                      int64_t occupancy_ns, int64_t now_ns) noexcept nogil:
    """When `count` interrupts are over, of which the first began then. Each takes its time from
    then on, or, with an occupancy, the first is delivered in what is beside that, and each takes
    its handler that from when it is ready."""
    if occupancy_ns == 0:
        return began_ns + <int64_t>count * interrupt_time_ns
    return <int64_t>count * occupancy_ns + max(
        now_ns, began_ns + interrupt_time_ns - occupancy_ns)
