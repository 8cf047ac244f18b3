"""Sending: messages, notifies, connect requests, resends; the wait for room; the way to itself."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport cost_meter, pay, pay_copy, pay_lines
from shrimpmx.costs.rows cimport (
    COST_fragment_done_ns, COST_reuse_ns, COST_send_call_ns, COST_send_cost_ns,
    COST_send_fragment_ns, COST_send_message_ns,
)
from shrimpmx.host.charges cimport pay_send_side
from shrimpmx.host.send_commands cimport Envelope
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.pool cimport pool_give
from shrimpmx.mx.request cimport request_complete, request_give_data
from shrimpmx.mx.types cimport (
    REQUEST_DONE, REQUEST_IN_FLIGHT, REQUEST_POSTING, REQUEST_RELEASED, REQUEST_ZOMBIE,
    STATUS_SUCCESS, STATUS_TRUNCATED, MxPartner, MxRequest, RequestStatus, list_remove,
)
from shrimpmx.shared.layout cimport endpoint_descriptor

# -- What a packet, and its message, cost the rank that sends it.

cdef inline void charge_message(Library library) noexcept nogil:
    """A message's time beside its packets'. What is there leaves meanwhile, as charge_packet()."""
    cdef int64_t cost_ns = pay(&library.host.meter, COST_send_message_ns)
    if cost_ns != 0:
        library.driver.publish()
        library.host.charge(cost_ns)


cdef inline void charge_packet(Library library, const MxPartner *partner, uint32_t length,
                               bint is_fragment=False) noexcept nogil:
    """The time of the next packet to `partner`, and that of the copy of its data, unless it finds
    the tx ring full. Those before it leave meanwhile, unless the NIC sleeps, which is woken when
    all are there. A packet within the node needs neither buffer nor pages.
    """
    cdef cost_meter *meter = &library.host.meter
    cdef int64_t cost_ns
    if meter.prices == NULL or not library.driver.has_tx_slot():
        return
    cost_ns = (pay(meter, COST_send_call_ns) + pay(meter, COST_send_cost_ns)
               + pay_copy(meter, length))
    if not partner.local:
        cost_ns += pay_reuse(library) + pay_send_side(
            meter, library.driver.node.header, library.driver.descriptor.process_core)
        if is_fragment:
            cost_ns += pay(meter, COST_send_fragment_ns)
    if cost_ns != 0:
        library.driver.publish()
        library.host.charge(cost_ns)


cdef inline int64_t pay_reuse(Library library) noexcept nogil:
    """The buffer of a packet comes back from the core that has freed it, if there is one."""
    cdef const endpoint_descriptor *descriptor = library.driver.descriptor
    cdef cost_meter *meter = &library.host.meter
    cdef uint32_t most = library.driver.port.tx.entries
    if library.send.reused == descriptor.sends_freed:
        return 0
    # Answers that a rank sends without a payment take buffers, too.
    if descriptor.sends_freed - library.send.reused > most:
        library.send.reused = descriptor.sends_freed - most
    library.send.reused += 1
    if descriptor.freed_by == descriptor.process_core or descriptor.process_core == 0:
        return 0
    return pay(meter, COST_reuse_ns) + pay_lines(
        meter, descriptor.freed_by, descriptor.process_core)


cdef inline void charge_done_fragments(Library library) noexcept nogil:
    """The events of fragments whose buffers are free again: of all but those that may still be
    among the frames under way, so that none comes too early."""
    cdef const endpoint_descriptor *descriptor = library.driver.descriptor
    cdef uint32_t left = library.send.fragments - library.send.fragments_done
    cdef uint32_t under_way
    if left == 0 or descriptor.freed_by == 0:
        return
    under_way = library.driver.port.tx.reserved - descriptor.sends_freed
    if left > under_way:
        library.send.fragments_done += left - under_way
        library.host.charge(
            pay(&library.host.meter, COST_fragment_done_ns, left - under_way))


# Starts a send; NULL only if memory is out. Then ring the doorbell. `synchronous`: it is done
# only when a receive has taken the message.
cdef MxRequest *send_start(Library library, MxPartner *partner, const void *data,
                           uint32_t length, uint64_t match, bint synchronous) noexcept nogil
# Sends a short message without a request, if it can go into the ring of a rank of this node now,
# and nothing is charged or traced. False: then send_start().
cdef bint send_at_once(Library library, MxPartner *partner, const void *data, uint32_t length,
                       uint64_t match) noexcept nogil
# Sends a notify that is filled in; its acknowledgement is not reported.
cdef void send_notify(Library library, MxRequest *notify) noexcept nogil
# Puts a request's packets (or what is left of them) into the tx ring.
cdef void send_post(Library library, MxRequest *request) noexcept nogil
# How many events a message makes in its partner's ring.
cdef uint32_t events_of(Library library, const MxRequest *request) noexcept nogil
# Sends of a partner that were held back, as far as they may go now.
cdef void send_throttled(Library library, MxPartner *partner) noexcept nogil
# Requests that had found the tx ring full.
cdef void send_starved(Library library) noexcept nogil
# Requests whose answer is overdue go out again; after too many times the partner is dead.
cdef void send_overdue(Library library) noexcept nogil
# Requests sent since the last pass went out about now.
cdef void send_stamp(Library library) noexcept nogil


cdef inline Envelope envelope_to(const MxPartner *partner, uint32_t session, uint16_t seqnum,
                                 uint64_t match) noexcept nogil:
    """Of a packet to a partner; with it goes what we have received of its messages."""
    cdef Envelope envelope
    envelope.peer = partner.peer_index
    envelope.dst_endpoint = partner.endpoint
    envelope.session = session
    envelope.seqnum = seqnum
    envelope.piggyack = partner.next_frag
    envelope.match = match
    return envelope


cdef inline void send_limit_resends(Library library, uint32_t resends_max) noexcept nogil:
    """From now on, of all requests without a limit of their own."""
    library.send.resends_max = resends_max


cdef inline void send_end(Library library, MxRequest *request,
                          RequestStatus status) noexcept nogil:
    """A send is acknowledged, or given up: it leaves its queues and gives its data back."""
    list_remove(&request.queue)
    list_remove(&request.chain)
    if request.flags & REQUEST_ZOMBIE:
        library.send.zombies -= 1
    request_give_data(library, request)
    request.flags &= ~(<uint32_t>(REQUEST_IN_FLIGHT | REQUEST_ZOMBIE | REQUEST_POSTING))
    if not request.flags & REQUEST_DONE:
        request_complete(library, request, status)
    elif request.flags & REQUEST_RELEASED:
        pool_give(&library.pool, request)


# -- Messages of an endpoint to itself: copied by the library, without packets.

# Sends to the endpoint itself, `partner`; NULL only if memory is out. `synchronous`: done only
# when received. The data of a long or synchronous message stays where it is until then.
cdef MxRequest *send_to_self(Library library, MxPartner *partner, const void *data,
                             uint32_t length, uint64_t match, bint synchronous) noexcept nogil


cdef inline void end_send_to_self(Library library, MxRequest *kept,
                                  uint32_t capacity) noexcept nogil:
    """The kept message was received into `capacity` bytes: if its send still has the data, that
    is done now. Harmless for messages of others."""
    cdef MxRequest *sender = kept.sender
    if sender == NULL:
        return
    kept.sender = NULL
    list_remove(&kept.chain)
    sender.received = min(kept.length, capacity)
    request_complete(library, sender,
                     STATUS_TRUNCATED if kept.length > capacity else STATUS_SUCCESS)
