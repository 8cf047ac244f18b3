"""Partners: finding one, learning its session, giving it up (Open-MX: omx_partner.c).

The side that connects tells the session of its endpoint and the sequence number it expects
next; the other side adopts both. A changed session means that the partner was
restarted. A changed session *counter* in the expected number means that the partner
had given us up. In both cases what was in flight is lost, and numbers start afresh at
1 under the next counter, so that packets of the old conversation cannot be mistaken.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, realloc
from libc.string cimport memset

from shrimpmx.mx.connect cimport connects_ask_again
from shrimpmx.mx.large cimport large_drop, large_release
from shrimpmx.mx.library cimport Library, count
from shrimpmx.mx.match cimport match_remove
from shrimpmx.mx.pool cimport pool_give
from shrimpmx.mx.request cimport request_complete, request_give_data
from shrimpmx.mx.send cimport send_end
from shrimpmx.mx.types cimport (
    ACK_NONE, REQUEST_KEPT, REQUEST_NOTIFY, REQUEST_PARTIAL, REQUEST_TAKEN, SEQNUM_FIRST,
    SEQNUM_SESSION_MASK, SEQNUM_SESSION_STEP, STATUS_BAD_ENDPOINT, STATUS_BAD_SESSION,
    STATUS_CLOSED, STATUS_UNREACHABLE, MxPartner, MxRequest, RequestStatus, list_append, list_clear,
    list_empty, list_remove, partner_of_refusals, request_of_chain, request_of_queue,
    seqnum_same_session,
)
from shrimpmx.shared.layout cimport COUNTER_partners_dead
from shrimpmx.wire.wire cimport NACK_BAD_ENDPOINT, NACK_BAD_SESSION, NACK_ENDPOINT_CLOSED

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
