"""What interrupts and frames cost an emulated host beside this one's own time.

An agent that pays says until when it works (`busy_until_ns`); its runner burns the time.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport (
    LINE_IN_CACHE, Prices, cost_meter, pay, pay_copy, pay_lines, way_of_line,
)
from shrimpmx.costs.rows cimport (
    COST_ack_packet_ns, COST_cold_packet_ns, COST_fragment_packet_ns, COST_frame_line_ns,
    COST_handler_poll_ns, COST_handover_ns, COST_interrupt_time_ns, COST_packet_cost_ns,
    COST_page_ns, COST_reply_packet_ns, COST_small_packet_ns, COST_tx_handover_ns, cost_row,
)
from shrimpmx.host.pull cimport PULL_LINES
from shrimpmx.shared.layout cimport (
    CACHE_LINE_BYTES, CORE_PENDING_SENT, ENDPOINT_LINES, EVENT_RING_RESET, RX_RING_LINES,
    TX_RING_LINES, endpoint_descriptor, frame_slot, interrupt_vector, node_endpoint, node_header,
    node_vector,
)
from shrimpmx.wire.wire cimport (
    PTYPE_MEDIUM_FRAG, PTYPE_PULL_REPLY, PTYPE_TRUC, WIRE_HEAD_BYTES, WIRE_MARK, frame_endpoint,
)

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil

cdef enum:
    PAGE_BYTES = 4096
    # Of a fragment and of a pull reply: the shorter one, so that no page is left out.
    PAGED_HEADER_BYTES = WIRE_HEAD_BYTES + 16


cdef inline bint charges_frames(Prices prices) noexcept:
    """Whether who polls a ring pays for frames, or for the poll."""
    cdef cost_row row
    if prices is None:
        return False
    for row in (COST_packet_cost_ns, COST_small_packet_ns, COST_fragment_packet_ns,
                COST_reply_packet_ns, COST_ack_packet_ns, COST_handover_ns, COST_cold_packet_ns,
                COST_handler_poll_ns, COST_frame_line_ns, COST_page_ns):
        if prices.list.ns[row] != 0:
            return True
    return prices.list.copy_byte_ns != 0 or prices.has_lines()


cdef inline cost_row row_of_type(int ptype) noexcept nogil:
    """The cost of a packet of that type beside what each packet takes."""
    if ptype == PTYPE_PULL_REPLY:
        return COST_reply_packet_ns
    if ptype == PTYPE_MEDIUM_FRAG:
        return COST_fragment_packet_ns
    return COST_ack_packet_ns if ptype == PTYPE_TRUC else COST_small_packet_ns


cdef inline int64_t pay_frame_copy(cost_meter *meter, uint32_t length,
                                   bint in_pages) noexcept nogil:
    """The copy of a frame's bytes out of memory, where DMA has put them; `in_pages`: into a
    message's pages, which are mapped for it."""
    cdef int64_t cost_ns = pay_copy(meter, length)
    cost_ns += pay(meter, COST_frame_line_ns, (length + CACHE_LINE_BYTES - 1) // CACHE_LINE_BYTES)
    if in_pages and length > PAGED_HEADER_BYTES:
        length -= PAGED_HEADER_BYTES
        cost_ns += pay(meter, COST_page_ns, (length + PAGE_BYTES - 1) // PAGE_BYTES)
    return cost_ns


cdef inline int64_t pay_frame(cost_meter *meter, node_header *node, uint32_t core,
                              bint offloads, const frame_slot *slot) noexcept nogil:
    """What `core`, its number + 1, pays for a frame: its handling, by its type, the copy of its
    bytes, and the lines of its endpoint, its pull, and the event where the process resets that.
    `offloads`: a dma agent copies what a pull brings.
    """
    cdef int64_t cost_ns = pay(meter, COST_packet_cost_ns)
    cdef int endpoint = frame_endpoint(slot.frame, slot.length)
    cdef int ptype
    cdef bint pulled
    cdef const endpoint_descriptor *descriptor
    if endpoint < 0 or <uint32_t>endpoint >= node.endpoints_count:
        return cost_ns  # it will be dropped
    descriptor = node_endpoint(node, endpoint)
    ptype = slot.frame[WIRE_HEAD_BYTES] & ~WIRE_MARK
    pulled = ptype == PTYPE_PULL_REPLY
    cost_ns += pay(meter, row_of_type(ptype))
    if not (pulled and offloads):
        cost_ns += pay_frame_copy(meter, slot.length, pulled or ptype == PTYPE_MEDIUM_FRAG)
    cost_ns += pay_lines(meter, descriptor.last_core, core,
                         ENDPOINT_LINES + (PULL_LINES if pulled else 0))
    if descriptor.last_core != 0 and descriptor.last_core != core:
        cost_ns += pay(meter, COST_handover_ns)
    if descriptor.ring_kind == EVENT_RING_RESET and not pulled:
        cost_ns += pay_lines(meter, descriptor.process_core, core)
    return cost_ns


cdef inline int64_t pay_poll(cost_meter *meter, interrupt_vector *vector, uint32_t core,
                             bint *is_cold) noexcept nogil:
    """What `core`, its number + 1, pays for a poll of a vector's ring that finds frames, or of its
    backlog (NULL): the poll, and the lines of a ring that another core has polled last, whose
    frames are cold."""
    cdef int64_t cost_ns = pay(meter, COST_handler_poll_ns)
    is_cold[0] = False
    if vector == NULL:
        return cost_ns
    is_cold[0] = vector.polled_by != 0 and vector.polled_by != core
    cost_ns += pay_lines(meter, vector.polled_by, core, RX_RING_LINES)
    vector.polled_by = <uint16_t>core
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


cdef inline int64_t pay_freed(cost_meter *meter, node_header *node,
                              uint32_t core) noexcept nogil:
    """The lines of ranks' send buffers that come to `core`, its number + 1, from their senders'
    cores to be freed there, one each. It tells each sender how many."""
    cdef endpoint_descriptor *descriptor
    cdef uint32_t index, freed
    cdef int64_t cost_ns = 0
    for index in range(node.endpoints_count):
        descriptor = node_endpoint(node, index)
        freed = descriptor.sends_left - descriptor.sends_freed
        if freed != 0:
            cost_ns += pay_lines(meter, descriptor.process_core, core, freed)
            descriptor.sends_freed += freed
            descriptor.freed_by = core
    return cost_ns


cdef inline int64_t pay_send_side(cost_meter *meter, node_header *node,
                                  uint32_t core) noexcept nogil:
    """The NIC's send side comes to `core`, its number + 1, from the core that sent, or reaped
    completed sends, last."""
    cdef uint32_t before = node.sent.used_by
    cdef uint32_t way
    if meter.prices == NULL or core == 0 or not node.sent.interrupts:
        return 0
    node.sent.used_by = core
    way = way_of_line(meter.prices, before, core)
    if way == 0:
        return 0
    if way == LINE_IN_CACHE:  # where the other state is, too
        return pay_lines(meter, before, core, TX_RING_LINES)
    return pay_lines(meter, before, core, TX_RING_LINES) + pay(meter, COST_tx_handover_ns)


cdef inline int64_t interrupts_end_ns(cost_meter *meter, int64_t began_ns, uint32_t count,
                                      int64_t occupancy_ns, int64_t now_ns) noexcept nogil:
    """When `count` interrupts are over, of which the first began then. Each takes its time from
    then on, or, with an occupancy, the first is delivered in what is beside that, and each takes
    its handler that from when it is ready."""
    cdef int64_t cost_ns = pay(meter, COST_interrupt_time_ns, count)
    if occupancy_ns == 0:
        return began_ns + cost_ns
    return <int64_t>count * occupancy_ns + max(
        now_ns, began_ns + meter.prices.ns[COST_interrupt_time_ns] - occupancy_ns)
