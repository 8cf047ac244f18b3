"""Sending (Open-MX: omx_send.c).

A message gets its sequence number when it may go: not more than `throttle` of a
partner are in flight (Open-MX), and none goes while those make `send_window` events in
its ring or more, unless they are too few to be acknowledged at once (ours). It completes
when its last packet is in the tx ring, before it is acknowledged, as long as there are
few of these "zombies" and room to retain its data for a resend; else it completes when
acknowledged. A resend repeats all of a message's packets. Of a large message only the
rndv is sent here; large.pyx has the rest.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport pay_copy
from shrimpmx.host.send_commands cimport Envelope
from shrimpmx.mx.large cimport (
    LARGE_NEVER, LARGE_READY, LARGE_WAITS, LargeReady, large_prepare, large_transmit,
)
from shrimpmx.mx.library cimport Library, count, trace_message
from shrimpmx.mx.partner cimport partner_die, partner_refused
from shrimpmx.mx.pool cimport arena_take, pool_give, pool_take
from shrimpmx.mx.recv cimport match_finish, match_keep, take_receive
from shrimpmx.mx.request cimport request_complete, request_keep_beginning
from shrimpmx.mx.types cimport (
    ACK_NONE, INLINE_BYTES, REQUEST_CONNECT, REQUEST_DONE, REQUEST_IN_ARENA, REQUEST_IN_FLIGHT,
    REQUEST_KEPT, REQUEST_LARGE, REQUEST_NOTIFY, REQUEST_POSTING, REQUEST_RELEASED, REQUEST_SEND,
    REQUEST_ZOMBIE, STATUS_NO_RESOURCES, STATUS_SUCCESS, STATUS_TRUNCATED, STATUS_UNREACHABLE,
    ListLink, MxPartner, MxRequest, list_append, list_empty, list_insert_after, list_remove,
    request_of_chain, request_of_queue, seqnum_distance, seqnum_next,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.copy cimport copy_bytes
from shrimpmx.native.trace cimport (
    TRACE_isend, TRACE_isend_throttled, TRACE_resend, TRACE_unexpected,
)
from shrimpmx.shared.layout cimport (
    SMALL_MAX_BYTES, TINY_MAX_BYTES, COUNTER_acks_piggybacked, COUNTER_recv_unexpected,
    COUNTER_resent_messages, COUNTER_sent_large, COUNTER_sent_self, COUNTER_sent_shared,
    COUNTER_zombies, event_connect,
)
from shrimpmx.wire.wire cimport PTYPE_SMALL, PTYPE_TINY


cdef MxRequest *send_start(Library library, MxPartner *partner, const void *data,
                           uint32_t length, uint64_t match, bint synchronous) noexcept nogil:
    cdef MxRequest *request
    if partner.is_self and partner.can_send:
        return send_to_self(library, partner, data, length, match, synchronous)
    request = pool_take(&library.pool)
    if request == NULL:
        return NULL
    request.kind = REQUEST_SEND
    request.partner = partner
    request.data = <uint8_t *>data
    request.length = length
    request.match = match
    if synchronous or length > eager_max(library, partner):
        request.flags = REQUEST_LARGE
    if not partner.can_send:
        request_complete(library, request, STATUS_UNREACHABLE)
    elif not list_empty(&partner.throttled) or not launched(library, request):
        request.flags |= REQUEST_IN_FLIGHT | REQUEST_POSTING
        list_append(&partner.throttled, &request.queue)
        trace_message(library, TRACE_isend_throttled, partner, 0, length)
    return request


cdef inline uint32_t eager_max(Library library, const MxPartner *partner) noexcept nogil:
    return library.settings.shared_eager_max if partner.local else library.settings.eager_max


cdef bint send_at_once(Library library, MxPartner *partner, const void *data, uint32_t length,
                       uint64_t match) noexcept nogil:
    cdef Envelope envelope
    if (
        not partner.local or not partner.can_send or partner.is_self or length > SMALL_MAX_BYTES
        or not list_empty(&partner.throttled) or not list_empty(&library.send.starved)
        or library.host.meter.prices != NULL or library.trace != NULL
        or not may_go(library, partner)
    ):
        return False
    envelope = envelope_to(partner, partner.true_session, partner.next_send, match)
    if library.driver.send_message(PTYPE_TINY if length <= TINY_MAX_BYTES else PTYPE_SMALL,
                                   &envelope, data, length) <= 0:
        return False
    partner.next_send = seqnum_next(partner.next_send)
    count(library, COUNTER_sent_shared)
    piggyback(library, partner)
    return True


cdef void send_notify(Library library, MxRequest *notify) noexcept nogil:
    """It need not keep its place among messages: overtaking those that wait for memory, it
    cannot be the reason why both sides wait for ever."""
    cdef ListLink *place = &notify.partner.throttled
    notify.flags = REQUEST_DONE | REQUEST_RELEASED
    if may_go(library, notify.partner):
        launch(library, notify)
        return
    while request_of_queue(place.next).kind == REQUEST_NOTIFY and (
        place.next != &notify.partner.throttled
    ):
        place = place.next
    notify.flags |= REQUEST_IN_FLIGHT | REQUEST_POSTING
    list_insert_after(place, &notify.queue)


cdef inline bint launched(Library library, MxRequest *request) noexcept nogil:
    """Whether the message is on its way, or has ended since it can never go."""
    cdef LargeReady ready = LARGE_READY
    if not may_go(library, request.partner):
        return False
    if request.flags & REQUEST_LARGE:
        ready = large_prepare(library, request)
    if ready == LARGE_READY:
        launch(library, request)
    elif ready == LARGE_NEVER:
        request.flags &= ~(<uint32_t>(REQUEST_IN_FLIGHT | REQUEST_POSTING))
        request_complete(library, request, STATUS_NO_RESOURCES)
    return ready != LARGE_WAITS


cdef inline bint may_go(Library library, MxPartner *partner) noexcept nogil:
    """A full window still lets as many messages go as make the partner acknowledge at once."""
    cdef uint32_t in_flight = seqnum_distance(partner.next_send, partner.next_acked)
    return in_flight < library.settings.throttle and (
        partner.unacked_events < library.settings.send_window
        or in_flight < library.settings.notacked_max
        or partner.local
    )


cdef uint32_t events_of(Library library, const MxRequest *request) noexcept nogil:
    if (
        request.kind != REQUEST_SEND
        or request.flags & REQUEST_LARGE
        or request.length <= SMALL_MAX_BYTES
    ):
        return 1
    return (request.length - 1) // library.settings.frag_bytes + 1


cdef inline void launch(Library library, MxRequest *request) noexcept nogil:
    """The message gets its number and its place in its partner's list."""
    cdef MxPartner *partner = request.partner
    request.flags &= ~(<uint32_t>REQUEST_POSTING)
    request.flags |= REQUEST_IN_FLIGHT
    request.seqnum = partner.next_send
    partner.next_send = seqnum_next(partner.next_send)
    partner.unacked_events += events_of(library, request)
    list_append(&partner.unacked, &request.chain)
    if request.kind == REQUEST_SEND:
        charge_message(library)
        if request.flags & REQUEST_LARGE:
            count(library, COUNTER_sent_large)
        if partner.local:
            count(library, COUNTER_sent_shared)
        trace_message(library, TRACE_isend, partner, request.seqnum, request.length)
    send_post(library, request)


cdef void send_throttled(Library library, MxPartner *partner) noexcept nogil:
    cdef MxRequest *request
    list_remove(&partner.waiting)
    while not list_empty(&partner.throttled):
        request = request_of_queue(partner.throttled.next)
        list_remove(&request.queue)
        if not launched(library, request):
            list_insert_after(&partner.throttled, &request.queue)
            return


cdef void send_post(Library library, MxRequest *request) noexcept nogil:
    if list_empty(&library.send.starved) and transmit(library, request):
        posted(library, request)
    else:
        if not request.partner.local:
            library.send.tx_full = True
        else:
            library.send.starves_locally = True
        request.flags |= REQUEST_POSTING
        list_append(&library.send.starved, &request.queue)


cdef void send_starved(Library library) noexcept nogil:
    """A send that waits for a local partner's ring does not hold up others. Where none of them is
    local, none is looked at behind the one that finds the tx ring full.
    """
    cdef ListLink *link = library.send.starved.next
    cdef MxRequest *request
    cdef bint local_left = False
    library.send.tx_full = False
    while link != &library.send.starved and (
            not library.send.tx_full or library.send.starves_locally):
        request = request_of_queue(link)
        link = link.next
        local_left |= request.partner.local
        if request.partner.ring_full if request.partner.local else library.send.tx_full:
            continue
        if not transmit(library, request):
            if request.partner.local:
                request.partner.ring_full = True
            else:
                library.send.tx_full = True
            continue
        list_remove(&request.queue)
        request.flags &= ~(<uint32_t>REQUEST_POSTING)
        posted(library, request)
    link = library.send.starved.next
    while link != &library.send.starved and library.send.starves_locally:
        request_of_queue(link).partner.ring_full = False
        link = link.next
    library.send.starves_locally = local_left


cdef inline void posted(Library library, MxRequest *request) noexcept nogil:
    """All packets are in the tx ring, or their events in a local target's: await the answer,
    complete early if possible."""
    if is_delivered(request):
        list_remove(&request.chain)
        request.partner.unacked_events -= events_of(library, request)
        request.flags &= ~(<uint32_t>REQUEST_IN_FLIGHT)
        request_complete(library, request, STATUS_SUCCESS)
        return
    request.sent_ns = library.now_ns if library.in_pass else NEVER_NS
    list_append(&library.send.resend, &request.queue)
    if (
        request.kind == REQUEST_SEND
        and not request.flags & (REQUEST_DONE | REQUEST_LARGE)
        and library.send.zombies < library.settings.zombies_max
        and retain(library, request)
    ):
        library.send.zombies += 1
        count(library, COUNTER_zombies)
        request.flags |= REQUEST_ZOMBIE
        request_complete(library, request, STATUS_SUCCESS)


cdef inline bint is_delivered(const MxRequest *request) noexcept nogil:
    """Whether nothing can happen to the message any more: all of it lies in the ring of a rank of
    this node, which loses nothing."""
    return (request.partner.local and list_empty(&request.partner.refusals)
            and request.kind == REQUEST_SEND and not request.flags & REQUEST_LARGE)


cdef inline bint retain(Library library, MxRequest *request) noexcept nogil:
    """Copies the message, whose buffer the user is about to get back."""
    cdef uint8_t *copy
    if request.length <= INLINE_BYTES:
        copy_bytes(request.inline_data, request.data, request.length)
        request.data = request.inline_data
        return True
    copy = arena_take(&library.send_arena, request.length, False)
    if copy == NULL:
        return False
    if library.host.meter.prices != NULL and library.host.meter.prices.keeps_copies:
        library.host.charge(pay_copy(&library.host.meter, request.length))
    copy_bytes(copy, request.data, request.length)
    request.data = copy
    request.flags |= REQUEST_IN_ARENA
    return True


cdef inline uint16_t piggyback(Library library, MxPartner *partner) noexcept nogil:
    """The acknowledgement rides on this message; an owed one need not go any more."""
    if partner.ack_state != ACK_NONE:
        list_remove(&partner.acks)
        partner.ack_state = ACK_NONE
        count(library, COUNTER_acks_piggybacked)
    partner.last_acked = partner.next_frag
    return partner.next_frag


cdef inline bint transmit(Library library, MxRequest *request) noexcept nogil:
    """All packets still to go are put into the tx ring; False if it is full before the end."""
    cdef MxPartner *partner = request.partner
    cdef Envelope envelope
    cdef int sent
    if request.kind == REQUEST_CONNECT:
        return transmit_connect(library, request)
    if request.kind == REQUEST_NOTIFY:
        charge_packet(library, partner, 0)
        envelope = envelope_to(partner, partner.back_session, request.seqnum, 0)
        sent = library.driver.send_notify(
            &envelope, request.length, request.rdma_id, request.rdma_seqnum)
    elif request.flags & REQUEST_LARGE:
        charge_packet(library, partner, 0)
        sent = large_transmit(library, request)
    elif request.length > SMALL_MAX_BYTES:
        return transmit_medium(library, request)
    else:
        charge_packet(library, partner, request.length)
        envelope = envelope_to(partner, partner.true_session, request.seqnum, request.match)
        sent = library.driver.send_message(
            PTYPE_TINY if request.length <= TINY_MAX_BYTES else PTYPE_SMALL, &envelope,
            request.data, request.length)
    if sent != 0:
        piggyback(library, partner)
    return accepted(library, partner, sent)


cdef inline bint accepted(Library library, MxPartner *partner, int sent) noexcept nogil:
    """Whether a send command leaves nothing to do: the packet is sent, or was refused."""
    if sent < 0:
        partner_refused(library, partner, -sent)
    return sent != 0


cdef bint transmit_medium(Library library, MxRequest *request) noexcept nogil:
    """One packet per fragment, the last one marked; goes on where a full ring stopped it."""
    cdef MxPartner *partner = request.partner
    cdef Envelope envelope = envelope_to(
        partner, partner.true_session, request.seqnum, request.match)
    cdef uint32_t offset = request.fragments_sent * library.settings.frag_bytes
    cdef uint32_t frag_length
    while offset < request.length:
        frag_length = min(library.settings.frag_bytes, request.length - offset)
        charge_packet(library, partner, frag_length, is_fragment=True)
        if not accepted(library, partner, library.driver.send_medium_frag(
            &envelope, request.length, request.fragments_sent, request.data + offset, frag_length,
            request.flags & REQUEST_IN_ARENA != 0,
        )):
            return False
        piggyback(library, partner)
        library.send.fragments += not partner.local
        request.fragments_sent += 1
        offset += frag_length
    return True


cdef bint transmit_connect(Library library, MxRequest *request) noexcept nogil:
    cdef MxPartner *partner = request.partner
    cdef Envelope envelope = envelope_to(partner, 0, 0, 0)
    cdef event_connect data
    data.src_session_id = library.session
    data.key_or_session = <uint32_t>request.match
    data.target_recv_seqnum_start = partner.next_match
    data.connect_seqnum = <uint8_t>request.seqnum
    data.status = 0
    return accepted(library, partner, library.driver.send_connect(&envelope, &data, False))


cdef void send_stamp(Library library) noexcept nogil:
    cdef MxRequest *request = request_of_queue(library.send.resend.previous)
    while &request.queue != &library.send.resend and request.sent_ns == NEVER_NS:
        request.sent_ns = library.now_ns
        request = request_of_queue(request.queue.previous)


cdef void send_overdue(Library library) noexcept nogil:
    cdef MxRequest *request
    while not list_empty(&library.send.resend):
        request = request_of_queue(library.send.resend.next)
        if request.sent_ns + library.settings.resend_delay_ns > library.now_ns:
            return
        request = oldest_overdue(library, request)
        if request.resends >= (request.resends_max or library.send.resends_max):
            partner_die(library, request.partner, STATUS_UNREACHABLE)
            continue
        list_remove(&request.queue)
        request.resends += 1
        request.fragments_sent = 0
        count(library, COUNTER_resent_messages)
        trace_message(library, TRACE_resend, request.partner, request.seqnum, request.length)
        send_post(library, request)


cdef inline MxRequest *oldest_overdue(Library library, MxRequest *request) noexcept nogil:
    """The message to resend in place of `request`: its partner's oldest one, if overdue too.

    The receiver needs that one first. In an unlucky order a short event ring would take the
    same useless head of every burst, and drop the one message that gets things moving.
    """
    cdef MxRequest *oldest
    if list_empty(&request.partner.unacked):
        return request
    oldest = request_of_chain(request.partner.unacked.next)
    if (
        oldest.flags & REQUEST_POSTING
        or oldest.sent_ns > library.now_ns - library.settings.resend_delay_ns
    ):
        return request
    return oldest


# -- Messages of an endpoint to itself: copied by the library, without packets (Open-MX).
#
# Nothing can be lost or overtaken on this way, so that there are no sequence numbers, no
# acknowledgements and no resends. The receive that takes a message is found as for any other.
# A sender that still has the data when it is received learns whether it was truncated.

cdef MxRequest *send_to_self(Library library, MxPartner *partner, const void *data,
                             uint32_t length, uint64_t match, bint synchronous) noexcept nogil:
    cdef MxRequest *receive
    cdef MxRequest *request = pool_take(&library.pool)
    if request == NULL:
        return NULL
    request.kind = REQUEST_SEND
    request.partner = partner
    request.data = <uint8_t *>data
    request.length = length
    request.match = match
    receive = take_receive(library, partner, match, length,
                           <const uint8_t *>data if length <= library.settings.frag_bytes else NULL)
    if receive == NULL and not keep(library, request, synchronous):
        pool_give(&library.pool, request)
        return NULL
    count(library, COUNTER_sent_self)
    trace_message(library, TRACE_isend, partner, 0, length)
    if receive != NULL:
        receive_at_once(library, receive, request)
    return request


cdef void receive_at_once(Library library, MxRequest *receive, MxRequest *request) noexcept nogil:
    cdef bint truncated = request.length > receive.capacity
    receive.partner = request.partner
    receive.match = request.match
    receive.seqnum = 0
    receive.length = request.length
    receive.received = request.length
    request.received = min(request.length, receive.capacity)
    copy_bytes(receive.data, request.data, request.received)
    if truncated:
        request_keep_beginning(receive, request.data, request.length)
    match_finish(library, receive)
    request_complete(library, request, STATUS_TRUNCATED if truncated else STATUS_SUCCESS)


cdef bint keep(Library library, MxRequest *request, bint synchronous) noexcept nogil:
    """Keeps the message until a receive takes it; False if memory is out."""
    cdef MxRequest *kept = pool_take(&library.pool)
    if kept == NULL:
        return False
    kept.kind = REQUEST_KEPT
    kept.partner = request.partner
    kept.match = request.match
    kept.seqnum = 0
    kept.length = request.length
    kept.capacity = request.length
    kept.received = request.length
    if (
        synchronous
        or request.length > library.settings.eager_max
        or not copy(library, kept, request)
    ):
        kept.data = request.data
        kept.sender = request
        list_append(&request.partner.incoming, &kept.chain)
    else:
        request_complete(library, request, STATUS_SUCCESS)
    count(library, COUNTER_recv_unexpected)
    trace_message(library, TRACE_unexpected, request.partner, 0, request.length)
    match_keep(library, kept)
    return True


cdef bint copy(Library library, MxRequest *kept, const MxRequest *request) noexcept nogil:
    """Copies the data into room of the library's own; False if there is none."""
    kept.data = kept.inline_data
    if request.length > INLINE_BYTES:
        kept.data = arena_take(&library.receive_arena, request.length, True)
        if kept.data == NULL:
            return False
        kept.flags = REQUEST_IN_ARENA
    copy_bytes(kept.data, request.data, request.length)
    return True
