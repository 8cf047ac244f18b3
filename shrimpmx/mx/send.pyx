"""Sending eager messages (Open-MX: omx_send.c).

A message gets its sequence number when it may go: not more than `throttle` of a
partner are in flight. It completes when its last packet is in the tx ring, before it
is acknowledged, as long as there are few of these "zombies" and room to retain its
data for a resend; else it completes when acknowledged. A resend repeats all of a
message's packets.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.mx.library cimport Library, count, request_complete, trace_message
from shrimpmx.mx.partner cimport partner_die
from shrimpmx.mx.pool cimport arena_take, pool_take
from shrimpmx.mx.types cimport (
    ACK_NONE, INLINE_BYTES, REQUEST_CONNECT, REQUEST_DONE, REQUEST_IN_ARENA, REQUEST_IN_FLIGHT,
    REQUEST_POSTING, REQUEST_SEND, REQUEST_ZOMBIE, STATUS_SUCCESS, STATUS_UNREACHABLE, MxPartner,
    MxRequest, link_append, link_empty, link_remove, request_of_chain, request_of_queue,
    seqnum_distance, seqnum_next,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.trace cimport TRACE_isend, TRACE_isend_throttled, TRACE_resend
from shrimpmx.shared.layout cimport (
    COUNTER_acks_piggybacked, COUNTER_resent_messages, COUNTER_zombies, SMALL_MAX_BYTES,
    TINY_MAX_BYTES, event_connect,
)


cdef MxRequest *send_start(Library library, MxPartner *partner, const void *data,
                           uint32_t length, uint64_t match) noexcept nogil:
    cdef MxRequest *request = pool_take(&library.pool)
    if request == NULL:
        return NULL
    request.kind = REQUEST_SEND
    request.partner = partner
    request.data = <uint8_t *>data
    request.length = length
    request.match = match
    if not partner.can_send:
        request_complete(library, request, STATUS_UNREACHABLE)
    elif not may_go(library, partner) or not link_empty(&partner.throttled):
        request.flags = REQUEST_IN_FLIGHT | REQUEST_POSTING
        link_append(&partner.throttled, &request.queue)
        trace_message(library, TRACE_isend_throttled, partner, 0, length)
    else:
        launch(library, request)
    return request


cdef inline bint may_go(Library library, MxPartner *partner) noexcept nogil:
    return seqnum_distance(partner.next_send, partner.next_acked) < library.throttle


cdef inline void launch(Library library, MxRequest *request) noexcept nogil:
    """The message gets its number and its place in its partner's list."""
    cdef MxPartner *partner = request.partner
    request.flags = REQUEST_IN_FLIGHT
    request.seqnum = partner.next_send
    partner.next_send = seqnum_next(partner.next_send)
    link_append(&partner.unacked, &request.chain)
    trace_message(library, TRACE_isend, partner, request.seqnum, request.length)
    send_post(library, request)


cdef void send_throttled(Library library, MxPartner *partner) noexcept nogil:
    cdef MxRequest *request
    while not link_empty(&partner.throttled) and may_go(library, partner):
        request = request_of_queue(partner.throttled.next)
        link_remove(&request.queue)
        launch(library, request)


cdef void send_post(Library library, MxRequest *request) noexcept nogil:
    if link_empty(&library.starved) and transmit(library, request):
        posted(library, request)
    else:
        request.flags |= REQUEST_POSTING
        link_append(&library.starved, &request.queue)


cdef void send_starved(Library library) noexcept nogil:
    cdef MxRequest *request
    while not link_empty(&library.starved):
        request = request_of_queue(library.starved.next)
        if not transmit(library, request):
            return
        link_remove(&request.queue)
        request.flags &= ~(<uint32_t>REQUEST_POSTING)
        posted(library, request)


cdef inline void posted(Library library, MxRequest *request) noexcept nogil:
    """All packets are in the tx ring: await the answer, complete early if possible."""
    library.doorbell_wanted = True
    request.sent_ns = library.now_ns if library.in_pass else NEVER_NS
    link_append(&library.resend, &request.queue)
    if (
        request.kind == REQUEST_SEND
        and not request.flags & REQUEST_DONE
        and library.zombies < library.zombies_max
        and retain(library, request)
    ):
        library.zombies += 1
        count(library, COUNTER_zombies)
        request.flags |= REQUEST_ZOMBIE
        request_complete(library, request, STATUS_SUCCESS)


cdef inline bint retain(Library library, MxRequest *request) noexcept nogil:
    """Copies the message, whose buffer the user is about to get back."""
    cdef uint8_t *copy
    if request.length <= INLINE_BYTES:
        memcpy(request.inline_data, request.data, request.length)
        request.data = request.inline_data
        return True
    copy = arena_take(&library.send_arena, request.length, False)
    if copy == NULL:
        return False
    memcpy(copy, request.data, request.length)
    request.data = copy
    request.flags |= REQUEST_IN_ARENA
    return True


cdef inline uint16_t piggyback(Library library, MxPartner *partner) noexcept nogil:
    """The acknowledgement rides on this message; an owed one need not go any more."""
    if partner.ack_state != ACK_NONE:
        link_remove(&partner.acks)
        partner.ack_state = ACK_NONE
        count(library, COUNTER_acks_piggybacked)
    partner.last_acked = partner.next_frag
    return partner.next_frag


cdef inline bint transmit(Library library, MxRequest *request) noexcept nogil:
    """All packets still to go are put into the tx ring; False if it is full before the end."""
    cdef MxPartner *partner = request.partner
    cdef bint sent
    if request.kind == REQUEST_CONNECT:
        return transmit_connect(library, request)
    if request.length > SMALL_MAX_BYTES:
        return transmit_medium(library, request)
    if request.length > TINY_MAX_BYTES:
        sent = library.driver.send_small(
            partner.peer_index, partner.endpoint, partner.true_session, request.seqnum,
            partner.next_frag, request.match, request.data, request.length)
    else:
        sent = library.driver.send_tiny(
            partner.peer_index, partner.endpoint, partner.true_session, request.seqnum,
            partner.next_frag, request.match, request.data, request.length)
    if sent:
        piggyback(library, partner)
    return sent


cdef bint transmit_medium(Library library, MxRequest *request) noexcept nogil:
    """One packet per fragment, the last one marked; goes on where a full ring stopped it."""
    cdef MxPartner *partner = request.partner
    cdef uint32_t offset = request.fragments_sent * library.frag_bytes
    cdef uint32_t frag_length
    while offset < request.length:
        frag_length = min(library.frag_bytes, request.length - offset)
        if not library.driver.send_medium_frag(
            partner.peer_index, partner.endpoint, partner.true_session, request.seqnum,
            partner.next_frag, request.match, request.length, request.fragments_sent,
            request.data + offset, frag_length, offset + frag_length == request.length,
        ):
            library.doorbell_wanted = True  # for the fragments before
            return False
        piggyback(library, partner)
        request.fragments_sent += 1
        offset += frag_length
    return True


cdef bint transmit_connect(Library library, MxRequest *request) noexcept nogil:
    cdef MxPartner *partner = request.partner
    cdef event_connect data
    data.src_session_id = library.session
    data.key_or_session = <uint32_t>request.match
    data.target_recv_seqnum_start = partner.next_match
    data.connect_seqnum = <uint8_t>request.seqnum
    data.status = 0
    return library.driver.send_connect(partner.peer_index, partner.endpoint, 0, &data, False)


cdef void send_stamp(Library library) noexcept nogil:
    cdef MxRequest *request = request_of_queue(library.resend.previous)
    while &request.queue != &library.resend and request.sent_ns == NEVER_NS:
        request.sent_ns = library.now_ns
        request = request_of_queue(request.queue.previous)


cdef void send_overdue(Library library) noexcept nogil:
    cdef MxRequest *request
    while not link_empty(&library.resend):
        request = request_of_queue(library.resend.next)
        if request.sent_ns + library.resend_delay_ns > library.now_ns:
            return
        request = oldest_overdue(library, request)
        if request.resends >= library.resends_max:
            partner_die(library, request.partner, STATUS_UNREACHABLE)
            continue
        link_remove(&request.queue)
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
    if link_empty(&request.partner.unacked):
        return request
    oldest = request_of_chain(request.partner.unacked.next)
    if (
        oldest.flags & REQUEST_POSTING
        or oldest.sent_ns > library.now_ns - library.resend_delay_ns
    ):
        return request
    return oldest
