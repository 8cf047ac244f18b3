"""Partners: finding one, connecting, acknowledging, giving it up (Open-MX: omx_partner.c).

The side that connects tells the session of its endpoint and the sequence number it expects
next; the other side adopts both. A changed session means that the partner was
restarted. A changed session *counter* in the expected number means that the partner
had given us up. In both cases what was in flight is lost, and numbers start afresh at
1 under the next counter, so that packets of the old conversation cannot be mistaken.
"""

from libc.stdint cimport int8_t, int32_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, realloc
from libc.string cimport memset

from shrimpmx.host.send_commands cimport Envelope
from shrimpmx.mx.large cimport large_acked, large_asks, large_drop, large_release
from shrimpmx.mx.library cimport Library, count, trace_message
from shrimpmx.mx.pool cimport pool_give, pool_take
from shrimpmx.mx.recv cimport match_remove
from shrimpmx.mx.request cimport request_complete, request_give_data
from shrimpmx.mx.send cimport (
    charge_packet, envelope_to, events_of, send_end, send_post, send_throttled,
)
from shrimpmx.mx.types cimport (
    ACK_LATER, ACK_NONE, ACK_NOW, REQUEST_CONNECT, REQUEST_KEPT, REQUEST_LARGE, REQUEST_NOTIFY,
    REQUEST_PARTIAL, REQUEST_POSTING, REQUEST_TAKEN, SEQNUM_FIRST, SEQNUM_SESSION_MASK,
    SEQNUM_SESSION_STEP, STATUS_BAD_ENDPOINT, STATUS_BAD_KEY, STATUS_BAD_SESSION, STATUS_CANCELLED,
    STATUS_CLOSED, STATUS_SUCCESS, STATUS_UNREACHABLE, ListLink, MxPartner, MxRequest,
    RequestStatus, list_append, list_clear, list_empty, list_remove, partner_of_acks,
    partner_of_refusals, request_of_chain, request_of_queue, seqnum_distance, seqnum_same_session,
)
from shrimpmx.native.trace cimport TRACE_ack_sent, TRACE_acked
from shrimpmx.shared.layout cimport (
    COUNTER_acks_delayed, COUNTER_acks_immediate, COUNTER_partners_dead, COUNTER_recv_bad_session,
    COUNTER_recv_stale_ack, event, event_connect,
)
from shrimpmx.wire.wire cimport (
    CONNECT_BAD_KEY, CONNECT_OK, NACK_BAD_ENDPOINT, NACK_BAD_SESSION, NACK_ENDPOINT_CLOSED,
)


# -- Acknowledgements (Open-MX: omx_ack.c).
#
# An acknowledgement names the first message that is not fully received. It rides on
# every message that goes the other way; without one it goes after a delay (16 ms), or
# at the end of this pass if four messages wait for it or the partner shows by a
# duplicate that it missed the last one.

cdef void ack_take_in(Library library, MxPartner *partner, uint16_t acked) noexcept nogil:
    cdef uint16_t before = partner.next_acked
    cdef uint32_t advance = seqnum_distance(acked, before)
    cdef MxRequest *request
    if (
        not seqnum_same_session(acked, partner.next_send)
        or advance > seqnum_distance(partner.next_send, partner.next_acked)
    ):
        count(library, COUNTER_recv_stale_ack)
        return
    partner.next_acked = acked
    while not list_empty(&partner.unacked):
        request = request_of_chain(partner.unacked.next)
        if seqnum_distance(request.seqnum, before) >= advance:
            break
        trace_message(library, TRACE_acked, partner, request.seqnum, request.length)
        partner.unacked_events -= events_of(library, request)
        if request.flags & REQUEST_LARGE:
            large_acked(library, request)
        else:
            send_end(library, request, STATUS_SUCCESS)
    if not list_empty(&partner.throttled):
        send_throttled(library, partner)


cdef void ack_receive(Library library, MxPartner *partner, const event *incoming) noexcept nogil:
    cdef uint32_t acknum = incoming.liback.acknum
    if (
        incoming.liback.session_id != library.session
        or <int32_t>(acknum - partner.acknum_received) <= 0
    ):
        count(library, COUNTER_recv_stale_ack)
        return
    partner.acknum_received = acknum
    if incoming.liback.lib_seqnum != partner.next_acked:
        ack_take_in(library, partner, incoming.liback.lib_seqnum)


cdef void ack_schedule(Library library, MxPartner *partner, bint at_once) noexcept nogil:
    if at_once or (
        seqnum_distance(partner.next_frag, partner.last_acked) >= library.settings.notacked_max
    ):
        list_remove(&partner.acks)
        partner.ack_state = ACK_NOW
        list_append(&library.ack.now, &partner.acks)
    elif partner.ack_state == ACK_NONE:
        partner.ack_state = ACK_LATER
        partner.ack_due_ns = library.now_ns + library.settings.ack_delay_ns
        list_append(&library.ack.later, &partner.acks)


cdef bint send_ack(Library library, MxPartner *partner) noexcept nogil:
    """False if the tx ring is full; the partner stays in its list for the next pass."""
    cdef Envelope envelope
    charge_packet(library, partner, 0)
    envelope = envelope_to(partner, partner.back_session, partner.next_frag, 0)
    if not library.driver.send_liback(
        &envelope, partner.back_session, partner.acknum_sent + 1, partner.next_send, 0,
    ):
        return False
    partner.acknum_sent += 1
    trace_message(library, TRACE_ack_sent, partner, partner.next_frag, partner.acknum_sent)
    partner.last_acked = partner.next_frag
    partner.ack_state = ACK_NONE
    list_remove(&partner.acks)
    return True


cdef void ack_flush(Library library) noexcept nogil:
    while not list_empty(&library.ack.now):
        if not send_ack(library, partner_of_acks(library.ack.now.next)):
            return
        count(library, COUNTER_acks_immediate)
    while not list_empty(&library.ack.later):
        if partner_of_acks(library.ack.later.next).ack_due_ns > library.now_ns:
            return
        if not send_ack(library, partner_of_acks(library.ack.later.next)):
            return
        count(library, COUNTER_acks_delayed)


cdef void ack_flush_all(Library library) noexcept nogil:
    ack_flush(library)
    while not list_empty(&library.ack.later):
        if not send_ack(library, partner_of_acks(library.ack.later.next)):
            return
        count(library, COUNTER_acks_delayed)


cdef enum:
    ENDPOINTS_MAX = 256      # of a node: an address has a byte for them
    ROW_LEAST = 4            # endpoints of a node that a row has room for from the beginning


cdef MxPartner *partner_make(Library library, uint32_t peer_index,
                             uint32_t endpoint) noexcept nogil:
    cdef MxPartner *partner
    if peer_index >= library.settings.nodes_count or endpoint >= ENDPOINTS_MAX:
        return NULL
    partner = partner_find(library, peer_index, endpoint)
    if partner != NULL:
        return partner
    if not row_reaches(library, peer_index, endpoint):
        return NULL
    partner = <MxPartner *>calloc(1, sizeof(MxPartner))
    if partner == NULL:
        return NULL
    list_clear(&partner.acks)
    list_clear(&partner.unacked)
    list_clear(&partner.throttled)
    list_clear(&partner.connects)
    list_clear(&partner.early)
    list_clear(&partner.partial)
    list_clear(&partner.refusals)
    list_clear(&partner.waiting)
    list_clear(&partner.large)
    list_clear(&partner.incoming)
    partner.local = library.driver.sends_locally(peer_index)
    partner.is_self = (library.settings.self_path and peer_index == library.node.header.index
                       and endpoint == library.driver.index)
    partner.peer_index = peer_index
    partner.endpoint = endpoint
    receive_from(partner, library.settings.first_seqnum)
    send_from(partner, SEQNUM_FIRST)
    library.partner.rows[peer_index][endpoint] = partner
    partner.made_before = library.partner.made
    library.partner.made = partner
    return partner


cdef bint row_reaches(Library library, uint32_t peer_index, uint32_t endpoint) noexcept nogil:
    """Let a node's row have room for an endpoint; most nodes have few."""
    cdef uint16_t before = library.partner.row_sizes[peer_index]
    cdef uint16_t size = max(before, ROW_LEAST)
    cdef MxPartner **row
    while size <= endpoint:
        size *= 2
    if size == before:
        return True
    row = <MxPartner **>realloc(library.partner.rows[peer_index], size * sizeof(MxPartner *))
    if row == NULL:
        return False
    memset(row + before, 0, (size - before) * sizeof(MxPartner *))
    library.partner.rows[peer_index], library.partner.row_sizes[peer_index] = row, size
    return True


cdef void receive_from(MxPartner *partner, uint16_t seqnum) noexcept nogil:
    partner.next_match = seqnum
    partner.next_frag = seqnum
    partner.last_acked = seqnum


cdef void send_from(MxPartner *partner, uint16_t seqnum) noexcept nogil:
    partner.next_send = seqnum
    partner.next_acked = seqnum


cdef void receive_afresh(Library library, MxPartner *partner) noexcept nogil:
    """Expect the first number under the next session counter."""
    cdef uint16_t counter = <uint16_t>(
        (partner.next_match & SEQNUM_SESSION_MASK) + SEQNUM_SESSION_STEP)
    receive_from(partner, counter | library.settings.first_seqnum)


cdef Learned partner_learn(Library library, MxPartner *partner, uint32_t session,
                           uint16_t expected_seqnum) noexcept nogil:
    cdef Learned learned = LEARNED
    if partner.known and session != partner.back_session:
        if partner.restarted and session == partner.previous_session:
            return LEARNED_STALE
        drop_conversation(library, partner, STATUS_UNREACHABLE)
        partner.previous_session = partner.back_session
        partner.restarted = True
        partner.known = False
        # Its packets do not tell their sender's session, so that those of the old instance
        # which are still under way differ from the new ones only by the counter. If we gave the
        # old one up, that has moved on already.
        if partner.can_send:
            receive_afresh(library, partner)
            learned = LEARNED_ANEW
        partner.can_send = False
    elif partner.can_send and not seqnum_same_session(expected_seqnum, partner.next_send):
        drop_conversation(library, partner, STATUS_UNREACHABLE)
        partner.can_send = False
        receive_afresh(library, partner)
        learned = LEARNED_ANEW
    if not partner.known:
        partner.back_session = session
        partner.known = True
        partner.known_ns = library.now_ns
        partner.acknum_received = 0
    if not partner.can_send:
        partner.true_session = session
        partner.can_send = True
        send_from(partner, expected_seqnum)
    return learned


cdef void partner_die(Library library, MxPartner *partner,
                      RequestStatus status) noexcept nogil:
    count(library, COUNTER_partners_dead)
    # A bad session is the one that they are to replace.
    while status != STATUS_BAD_SESSION and not list_empty(&partner.connects):
        send_end(library, request_of_chain(partner.connects.next), status)
    drop_conversation(library, partner, status)
    partner.can_send = False
    receive_afresh(library, partner)
    connects_ask_again(library, partner)


cdef RequestStatus nack_status(uint32_t nack_type) noexcept nogil:
    if nack_type == NACK_BAD_ENDPOINT:
        return STATUS_BAD_ENDPOINT
    if nack_type == NACK_ENDPOINT_CLOSED:
        return STATUS_CLOSED
    return STATUS_BAD_SESSION if nack_type == NACK_BAD_SESSION else STATUS_UNREACHABLE


cdef void partner_refused(Library library, MxPartner *partner, uint32_t nack_type) noexcept nogil:
    partner.refused = <uint8_t>nack_type
    partner.refused_session = partner.true_session
    if list_empty(&partner.refusals):
        list_append(&library.partner.refused, &partner.refusals)


cdef void partners_end_refused(Library library) noexcept nogil:
    cdef MxPartner *partner
    cdef RequestStatus status
    while not list_empty(&library.partner.refused):
        partner = partner_of_refusals(library.partner.refused.next)
        list_remove(&partner.refusals)
        status = nack_status(partner.refused)
        if partner.can_send and partner.true_session == partner.refused_session:
            partner_die(library, partner, status)
        # A partner that was never connected has only connect requests, which need no session.
        while status != STATUS_BAD_SESSION and not list_empty(&partner.connects):
            send_end(library, request_of_chain(partner.connects.next), status)


cdef void drop_conversation(Library library, MxPartner *partner,
                            RequestStatus status) noexcept nogil:
    """What is in flight either way ends: sends and half-received messages with `status`."""
    cdef MxRequest *request
    while not list_empty(&partner.unacked):
        request = request_of_chain(partner.unacked.next)
        large_release(library, request)
        send_end(library, request, status)
    while not list_empty(&partner.throttled):
        send_end(library, request_of_queue(partner.throttled.next), status)
    large_drop(library, partner, status)
    partner.next_acked = partner.next_send
    partner.unacked_events = 0
    while not list_empty(&partner.partial):
        fail_receive(library, request_of_chain(partner.partial.next), status)
    while not list_empty(&partner.early):
        fail_receive(library, request_of_chain(partner.early.next), status)
    list_remove(&partner.acks)
    partner.ack_state = ACK_NONE


cdef void fail_receive(Library library, MxRequest *request,
                       RequestStatus status) noexcept nogil:
    match_remove(library, request)
    list_remove(&request.chain)
    request.flags &= ~(<uint32_t>REQUEST_PARTIAL)
    if request.flags & REQUEST_TAKEN:
        request_complete(library, request, status)
    elif request.kind == REQUEST_KEPT or request.kind == REQUEST_NOTIFY:
        request_give_data(library, request)
        pool_give(&library.pool, request)
    else:
        request_complete(library, request, status)


# -- Connecting (Open-MX: omx_partner.c).
#
# A request carries our session, the application's key and the sequence number that we
# expect from the partner; the reply the same of the other side. Requests are resent
# like messages. They carry sequence number 0, so a nack of 0 belongs to the oldest
# request that is pending.

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
