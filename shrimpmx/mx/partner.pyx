"""Partners: finding one, learning its session, giving it up (Open-MX: omx_partner.c).

Who connects tells the session of its endpoint and the sequence number it expects
next; the other side adopts both. A changed session means that the partner was
restarted. A changed session *counter* in the expected number means that the partner
had given us up. In both cases what was in flight is lost, and numbers start afresh at
1 under the next counter, so that packets of the old conversation cannot be mistaken.
"""

from libc.stdint cimport uint16_t, uint32_t
from libc.stdlib cimport calloc

from shrimpmx.mx.library cimport (
    Library, count, request_complete, request_end_send, request_give_data,
)
from shrimpmx.mx.pool cimport pool_give
from shrimpmx.mx.types cimport (
    ACK_NONE, REQUEST_KEPT, REQUEST_PARTIAL, SEQNUM_FIRST, SEQNUM_SESSION_MASK, SEQNUM_SESSION_STEP,
    STATUS_UNREACHABLE, MxPartner, MxRequest, RequestStatus, link_clear, link_empty,
    link_remove, request_of_chain, request_of_queue, seqnum_same_session,
)
from shrimpmx.shared.layout cimport COUNTER_partners_dead


cdef MxPartner *partner_make(Library library, uint32_t peer_index,
                             uint32_t endpoint) noexcept nogil:
    cdef MxPartner *partner
    if peer_index >= library.nodes_count or endpoint > 255:
        return NULL
    partner = library.partners[peer_index * 256 + endpoint]
    if partner != NULL:
        return partner
    partner = <MxPartner *>calloc(1, sizeof(MxPartner))
    if partner == NULL:
        return NULL
    link_clear(&partner.acks)
    link_clear(&partner.unacked)
    link_clear(&partner.throttled)
    link_clear(&partner.connects)
    link_clear(&partner.early)
    link_clear(&partner.partial)
    partner.peer_index = peer_index
    partner.endpoint = endpoint
    receive_from(partner, library.first_seqnum)
    send_from(partner, SEQNUM_FIRST)
    library.partners[peer_index * 256 + endpoint] = partner
    return partner


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
    receive_from(partner, counter | library.first_seqnum)


cdef bint partner_learn(Library library, MxPartner *partner, uint32_t session,
                        uint16_t expected_seqnum) noexcept nogil:
    if partner.known and session != partner.back_session:
        if partner.restarted and session == partner.previous_session:
            return False
        drop_conversation(library, partner, STATUS_UNREACHABLE)
        partner.can_send = False
        partner.previous_session = partner.back_session
        partner.restarted = True
        partner.known = False
        # Its packets do not tell their sender's session, so that those of the old instance
        # which are still under way differ from the new ones only by the counter.
        receive_afresh(library, partner)
    elif partner.can_send and not seqnum_same_session(expected_seqnum, partner.next_send):
        drop_conversation(library, partner, STATUS_UNREACHABLE)
        partner.can_send = False
        receive_afresh(library, partner)
    if not partner.known:
        partner.back_session = session
        partner.known = True
        partner.known_ns = library.now_ns
        partner.acknum_received = 0
    if not partner.can_send:
        partner.true_session = session
        partner.can_send = True
        send_from(partner, expected_seqnum)
    return True


cdef void partner_die(Library library, MxPartner *partner,
                      RequestStatus status) noexcept nogil:
    count(library, COUNTER_partners_dead)
    while not link_empty(&partner.connects):
        request_end_send(library, request_of_chain(partner.connects.next), status)
    drop_conversation(library, partner, status)
    partner.can_send = False
    receive_afresh(library, partner)


cdef void drop_conversation(Library library, MxPartner *partner,
                            RequestStatus status) noexcept nogil:
    """What is in flight either way ends: sends and half-received messages with `status`."""
    while not link_empty(&partner.unacked):
        request_end_send(library, request_of_chain(partner.unacked.next), status)
    while not link_empty(&partner.throttled):
        request_end_send(library, request_of_queue(partner.throttled.next), status)
    partner.next_acked = partner.next_send
    while not link_empty(&partner.partial):
        fail_receive(library, request_of_chain(partner.partial.next), status)
    while not link_empty(&partner.early):
        fail_receive(library, request_of_chain(partner.early.next), status)
    link_remove(&partner.acks)
    partner.ack_state = ACK_NONE


cdef void fail_receive(Library library, MxRequest *request,
                       RequestStatus status) noexcept nogil:
    link_remove(&request.queue)
    link_remove(&request.chain)
    request.flags &= ~(<uint32_t>REQUEST_PARTIAL)
    if request.kind == REQUEST_KEPT:
        request_give_data(library, request)
        pool_give(&library.pool, request)
    else:
        request_complete(library, request, status)
