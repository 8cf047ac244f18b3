"""Events straight into the rings of the other ranks of the node (Open-MX: omx_shared.c).

A message between two ranks of a node needs no frame, no NIC and no interrupt: the sender
does what the receive handler would do, under the same lock. Sender and receiver then share
one line per event: the lock, its counts and the sender's copy of the ring's state stay in
the sender's cache.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.host.event_fill cimport fill_packet
from shrimpmx.host.event_ring cimport (
    endpoint_lock_take, event_writer, event_writer_commit, event_writer_open_unexpected,
    event_writer_prefetch, event_writer_prepare, event_writer_recvq_offset,
)
from shrimpmx.native.atomics cimport load_acquire_u32, load_relaxed_u32
from shrimpmx.native.futex cimport WAIT_SLOT_NOTIFY, wait_slot, wait_slot_wake
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.shared.layout cimport (
    COUNTER_rank_notifications, COUNTER_rank_wakes, COUNTER_shared_connect_reply,
    COUNTER_shared_connect_request, COUNTER_shared_eventq_full, COUNTER_shared_liback,
    COUNTER_shared_medium_frag, COUNTER_shared_nack_lib, COUNTER_shared_notify, COUNTER_shared_rndv,
    COUNTER_shared_small, COUNTER_shared_tiny, ENDPOINT_OPEN, EVENT_CONNECT_REQUEST, EVENT_LIBACK,
    EVENT_MEDIUM_FRAG, EVENT_NOTIFY, EVENT_RNDV, EVENT_SMALL, EVENT_TINY, control_header,
    control_runner, endpoint_descriptor, event, node_endpoint, node_header,
)
from shrimpmx.wire.wire cimport (
    NACK_BAD_ENDPOINT, NACK_BAD_SESSION, NACK_ENDPOINT_CLOSED, PTYPE_CONNECT, PTYPE_MEDIUM_FRAG,
    PTYPE_SMALL, PTYPE_TRUC, WIRE_MARK,
)


cdef void local_open(LocalPort *port, Node node) noexcept:
    port.node = node.header
    port.control = node.control.header


cdef inline uint32_t event_counter(int type) noexcept nogil:
    if type == EVENT_TINY:
        return COUNTER_shared_tiny
    if type == EVENT_SMALL:
        return COUNTER_shared_small
    if type == EVENT_MEDIUM_FRAG:
        return COUNTER_shared_medium_frag
    if type == EVENT_LIBACK:
        return COUNTER_shared_liback
    if type == EVENT_RNDV:
        return COUNTER_shared_rndv
    if type == EVENT_NOTIFY:
        return COUNTER_shared_notify
    return (COUNTER_shared_connect_request if type == EVENT_CONNECT_REQUEST
            else COUNTER_shared_connect_reply)


cdef int local_post(const LocalPort *port, uint64_t *counters, const uint8_t *header,
                    uint32_t session, const uint8_t *data) noexcept nogil:
    cdef int ptype = header[0] & ~WIRE_MARK
    cdef int entered = local_enter(port.node, header[1])
    cdef endpoint_descriptor *descriptor
    cdef uint32_t runner
    cdef bint posted
    if entered < 0:
        return refuse(counters, ptype, entered)
    descriptor = node_endpoint(port.node, header[1])
    if ptype != PTYPE_CONNECT and descriptor.session_id != session:
        shared_lock_give(&descriptor.lock)
        return refuse(counters, ptype, -NACK_BAD_SESSION)
    runner = descriptor.runner
    posted = write_event(port.node, descriptor, counters, ptype, header, data)
    shared_lock_give(&descriptor.lock)
    if posted:
        local_wake(port.control, counters, runner)
    return posted


cdef inline int refuse(uint64_t *counters, int ptype, int refused) noexcept nogil:
    """As the receive handler answers: a nack to everything but a library acknowledgement."""
    if ptype == PTYPE_TRUC:
        return 1
    counters[COUNTER_shared_nack_lib] += 1
    return refused


cdef inline bint write_event(node_header *node, endpoint_descriptor *descriptor,
                             uint64_t *counters, int ptype, const uint8_t *header,
                             const uint8_t *data) noexcept nogil:
    """The packet's event in the unexpected ring of an endpoint whose lock is held."""
    cdef event_writer writer
    cdef event *e
    cdef uint8_t type
    event_writer_open_unexpected(&writer, node, descriptor)
    e = event_writer_prepare(&writer)
    if e == NULL:
        counters[COUNTER_shared_eventq_full] += 1
        return False
    e.peer_index = <uint16_t>node.index
    type = fill_packet(e, ptype, header, data, writer.recvq, event_writer_recvq_offset(&writer),
                       &node.geometry)
    event_writer_commit(&writer, e, type)
    event_writer_prefetch(&writer, ptype == PTYPE_SMALL or ptype == PTYPE_MEDIUM_FRAG)
    counters[event_counter(type)] += 1
    return True


cdef void local_wake(control_header *control, uint64_t *counters,
                     uint32_t runner) noexcept nogil:
    cdef wait_slot *slot
    cdef bint notified
    if runner >= control.runners_count:
        return
    slot = &control_runner(control, runner).slot
    notified = load_relaxed_u32(&slot.armed) == WAIT_SLOT_NOTIFY
    if wait_slot_wake(slot):
        counters[COUNTER_rank_notifications if notified else COUNTER_rank_wakes] += 1


cdef int local_enter(node_header *node, uint32_t endpoint) noexcept nogil:
    cdef endpoint_descriptor *descriptor
    if endpoint >= node.endpoints_count:
        return -NACK_BAD_ENDPOINT
    descriptor = node_endpoint(node, endpoint)
    if load_acquire_u32(&descriptor.state) != ENDPOINT_OPEN:
        return -NACK_ENDPOINT_CLOSED
    if not endpoint_lock_take(node, descriptor):
        return -NACK_ENDPOINT_CLOSED
    if descriptor.state != ENDPOINT_OPEN:  # closed while we waited for the lock
        shared_lock_give(&descriptor.lock)
        return -NACK_ENDPOINT_CLOSED
    return 0
