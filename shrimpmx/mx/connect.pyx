"""Connecting (Open-MX: omx_partner.c).

A request carries our session, the application's key and the sequence number that we
expect from the partner; the reply the same of the other side. Requests are resent
like messages. They carry sequence number 0, so a nack of 0 belongs to the oldest
request that is pending.
"""

from libc.stdint cimport int8_t, uint8_t, uint16_t, uint32_t

from shrimpmx.host.send_commands cimport Envelope
from shrimpmx.mx.large cimport large_asks
from shrimpmx.mx.library cimport Library, count
from shrimpmx.mx.partner cimport (
    LEARNED_ANEW, LEARNED_STALE, Learned, nack_status, partner_die, partner_learn, partner_make,
)
from shrimpmx.mx.pool cimport pool_take
from shrimpmx.mx.request cimport request_complete
from shrimpmx.mx.send cimport envelope_to, send_post
from shrimpmx.mx.types cimport (
    REQUEST_CONNECT, REQUEST_POSTING, STATUS_BAD_KEY, STATUS_BAD_SESSION, STATUS_CANCELLED,
    STATUS_SUCCESS, ListLink, MxPartner, MxRequest, RequestStatus, list_append, list_empty,
    list_remove, request_of_chain, seqnum_distance, seqnum_same_session,
)
from shrimpmx.shared.layout cimport COUNTER_recv_bad_session, event, event_connect
from shrimpmx.wire.wire cimport CONNECT_BAD_KEY, CONNECT_OK


cdef MxRequest *connect_start(Library library, MxPartner *partner,
                              uint32_t key) noexcept nogil:
    cdef MxRequest *request = pool_take(&library.pool)
    if request == NULL:
        return NULL
    partner.connect_seqnum += 1
    request.kind = REQUEST_CONNECT
    request.partner = partner
    request.match = key
    request.length = 0
    request.seqnum = partner.connect_seqnum
    list_append(&partner.connects, &request.chain)
    send_post(library, request)
    return request


cdef MxPartner *connect_known(Library library, Library other) noexcept nogil:
    """Each as a partner of the other; NULL without memory."""
    cdef MxPartner *there = partner_make(
        library, other.node.header.index, other.driver.index)
    cdef MxPartner *here = partner_make(
        other, library.node.header.index, library.driver.index)
    if there == NULL or here == NULL:
        return NULL
    partner_learn(library, there, other.session, here.next_match)
    partner_learn(other, here, library.session, there.next_match)
    return there


cdef void connect_cancel(Library library, MxRequest *request) noexcept nogil:
    connect_finish(library, request, STATUS_CANCELLED)


cdef void connect_request(Library library, const event *incoming) noexcept nogil:
    """Learns the partner's session and answers; a request that a later one overtook is stale."""
    cdef event_connect reply
    cdef Envelope envelope
    cdef MxPartner *partner = partner_make(library, incoming.peer_index, incoming.src_endpoint)
    if partner == NULL:
        return
    if (
        partner.known
        and partner.connect_heard
        and partner.back_session == incoming.connect.src_session_id
        and <int8_t>(incoming.connect.connect_seqnum - partner.connect_seen) < 0
    ) or partner_learn(
        library, partner, incoming.connect.src_session_id,
        incoming.connect.target_recv_seqnum_start,
    ) == LEARNED_STALE:
        count(library, COUNTER_recv_bad_session)
        return
    partner.connect_seen = incoming.connect.connect_seqnum
    partner.connect_heard = 1
    reply.src_session_id = incoming.connect.src_session_id
    reply.key_or_session = library.session
    reply.target_recv_seqnum_start = partner.next_match
    reply.connect_seqnum = incoming.connect.connect_seqnum
    reply.status = CONNECT_OK
    if incoming.connect.key_or_session != library.key:
        reply.status = CONNECT_BAD_KEY
    # If the tx ring is full the reply is lost; the request will come again.
    envelope = envelope_to(partner, 0, 0, 0)
    library.driver.send_connect(&envelope, &reply, True)


cdef void connect_reply(Library library, MxPartner *partner,
                        const event *incoming) noexcept nogil:
    cdef MxRequest *request
    cdef ListLink *link = partner.connects.next
    cdef Learned learned
    if incoming.connect.src_session_id != library.session:
        count(library, COUNTER_recv_bad_session)
        return
    while link != &partner.connects:
        request = request_of_chain(link)
        if <uint8_t>request.seqnum == incoming.connect.connect_seqnum:
            break
        link = link.next
    else:
        return  # answered already
    learned = partner_learn(library, partner, incoming.connect.key_or_session,
                            incoming.connect.target_recv_seqnum_start)
    if learned == LEARNED_STALE:
        count(library, COUNTER_recv_bad_session)
        return
    if learned == LEARNED_ANEW:
        connects_ask_again(library, partner)
        return
    if incoming.connect.status == CONNECT_OK:
        connect_finish(library, request, STATUS_SUCCESS)
    else:
        connect_finish(library, request, STATUS_BAD_KEY)


cdef void connects_ask_again(Library library, MxPartner *partner) noexcept nogil:
    cdef ListLink *link = partner.connects.next
    cdef MxRequest *request
    partner.can_send = False
    while link != &partner.connects:
        request = request_of_chain(link)
        link = link.next
        # The answer to an earlier one is no answer any more: the partner then sends by the number
        # that it was told there, and would never be heard.
        partner.connect_seqnum += 1
        request.seqnum = partner.connect_seqnum
        request.flags &= ~(<uint32_t>REQUEST_POSTING)
        list_remove(&request.queue)
        send_post(library, request)


cdef void connect_finish(Library library, MxRequest *request,
                         RequestStatus status) noexcept nogil:
    list_remove(&request.queue)
    list_remove(&request.chain)
    request.flags &= ~(<uint32_t>REQUEST_POSTING)
    request_complete(library, request, status)


cdef void nack_receive(Library library, MxPartner *partner,
                       const event *incoming) noexcept nogil:
    cdef RequestStatus status = nack_status(incoming.nack.nack_type)
    cdef uint16_t seqnum = incoming.nack.lib_seqnum
    if seqnum == 0 and status != STATUS_BAD_SESSION and not list_empty(&partner.connects):
        connect_finish(library, request_of_chain(partner.connects.next), status)
    elif nack_concerns(library, partner, seqnum, status):
        partner_die(library, partner, status)


cdef bint nack_concerns(Library library, MxPartner *partner, uint16_t seqnum,
                        RequestStatus status) noexcept nogil:
    """Whether a message with that number is in flight, or asks after large ones.

    After a partner's restart the numbers begin anew, and a nack of the old session may
    still be under way. It is let pass while no resend can have happened yet; if the new
    session is bad as well, the resent message will be nacked again.
    """
    if not partner.can_send or not seqnum_same_session(seqnum, partner.next_send):
        return False
    if partner.restarted and library.now_ns - partner.known_ns < library.settings.resend_delay_ns:
        return False
    return (
        seqnum_distance(seqnum, partner.next_acked)
        < seqnum_distance(partner.next_send, partner.next_acked)
    ) or large_asks(partner, seqnum)
