"""Receiving messages in order, exactly once, and matching them (Open-MX: omx_recv.c).

Packets come in any order, twice, or not at all. Two cursors per partner tell what to
do with one: `next_match` is the next message to match, `next_frag` the first that is
not complete. A packet at `next_match` is matched; between the two it belongs to a
message that was matched already; up to 255 ahead it is kept, sorted, until its turn;
anything older is a duplicate, dropped, and acknowledged again.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.mx.handles cimport partner_of
from shrimpmx.mx.large cimport large_adopt, large_notified, large_receive
from shrimpmx.mx.library cimport Library, Settings, count, trace_message
from shrimpmx.mx.partner cimport (
    ack_owe, ack_receive, ack_take_in, connect_reply, connect_request, nack_receive, partner_find,
)
from shrimpmx.mx.pool cimport arena_give, arena_take, pool_give, pool_take
from shrimpmx.mx.request cimport request_complete, request_give_data, request_keep_beginning
from shrimpmx.mx.send cimport end_send_to_self
from shrimpmx.mx.types cimport (
    INLINE_BYTES, REQUEST_DONE, REQUEST_FORGOTTEN, REQUEST_IN_ARENA, REQUEST_KEPT, REQUEST_LARGE,
    REQUEST_NOTIFY, REQUEST_PARTIAL, REQUEST_POSTED, REQUEST_RECEIVE, SEQNUM_HALF, STATUS_CANCELLED,
    STATUS_SUCCESS, STATUS_TRUNCATED, ListLink, MxPartner, MxRequest, RequestStatus, list_append,
    list_empty, list_insert_after, list_remove, request_of_chain, seqnum_distance, seqnum_next,
    seqnum_same_session,
)
from shrimpmx.native.copy cimport copy_bytes
from shrimpmx.native.copy_short cimport copy_short
from shrimpmx.native.trace cimport TRACE_received, TRACE_unexpected
from shrimpmx.shared.layout cimport (
    EVENT_CONNECT_REPLY, EVENT_CONNECT_REQUEST, EVENT_LIBACK, EVENT_MEDIUM_FRAG, EVENT_NACK_LIB,
    EVENT_NOTIFY, EVENT_RNDV, EVENT_SMALL, EVENT_TINY, COUNTER_cancelled,
    COUNTER_medium_no_assembly, COUNTER_nacks_received, COUNTER_recv_bad_fragment,
    COUNTER_recv_bad_session, COUNTER_recv_duplicate, COUNTER_recv_early, COUNTER_recv_events,
    COUNTER_recv_messages, COUNTER_recv_out_of_window, COUNTER_recv_unexpected, COUNTER_truncated,
    COUNTER_unexpected_handled, COUNTER_unexpected_no_buffer, event,
)


# -- Matching of 64 bits under a mask (Open-MX: omx_recv.c).
#
# A posted receive takes a message if `receive.match == (receive.mask & message.match)`.
# The oldest that fits is taken on either side (match_table), so that messages of one partner
# that fit the same receives are received in the order in which they were sent.

cdef MxRequest *match_receive(Library library, void *data, uint32_t capacity, uint64_t match,
                              uint64_t mask) noexcept nogil:
    cdef MxRequest *kept
    cdef MxRequest *receive = pool_take(&library.pool)
    if receive == NULL:
        return NULL
    receive.kind = REQUEST_RECEIVE
    receive.data = <uint8_t *>data
    receive.capacity = capacity
    receive.match = match
    receive.mask = mask
    kept = match_unexpected(library, match, mask)
    if kept != NULL:
        match_adopt(library, receive, kept)
    else:
        match_post(library, receive)
    return receive


cdef bint match_cancel(Library library, MxRequest *request) noexcept nogil:
    if not request.flags & REQUEST_POSTED:
        return False
    match_remove(library, request)
    request_complete(library, request, STATUS_CANCELLED)
    count(library, COUNTER_cancelled)
    return True


cdef void match_adopt(Library library, MxRequest *receive, MxRequest *kept) noexcept nogil:
    if kept.flags & REQUEST_DONE:  # taken, before its sender was given up
        receive.partner = kept.partner
        request_complete(library, receive, <RequestStatus>kept.status)
        request_give_data(library, kept)
        pool_give(&library.pool, kept)
        return
    if kept.flags & REQUEST_LARGE:
        large_adopt(library, receive, kept)
        return
    receive.partner = kept.partner
    receive.match = kept.match
    receive.seqnum = kept.seqnum
    receive.length = kept.length
    receive.received = kept.received
    receive.fragments = kept.fragments
    # Of a partial message this copies gaps too; the missing fragments then fill them.
    copy_bytes(receive.data, kept.data, min(receive.capacity, kept.length))
    if kept.length > receive.capacity:
        request_keep_beginning(receive, kept.data, kept.length)
    match_remove(library, kept)
    end_send_to_self(library, kept, receive.capacity)
    if kept.flags & REQUEST_PARTIAL:
        receive.flags |= REQUEST_PARTIAL
        list_insert_after(&kept.chain, &receive.chain)
        list_remove(&kept.chain)
    request_give_data(library, kept)
    pool_give(&library.pool, kept)
    if not receive.flags & REQUEST_PARTIAL:
        match_finish(library, receive)


cdef void match_finish(Library library, MxRequest *receive) noexcept nogil:
    library.receive.matches |= receive.match
    count(library, COUNTER_recv_messages)
    trace_message(library, TRACE_received, receive.partner, receive.seqnum, receive.length)
    if receive.length > receive.capacity:
        count(library, COUNTER_truncated)
        request_complete(library, receive, STATUS_TRUNCATED)
    else:
        request_complete(library, receive, STATUS_SUCCESS)


# One packet of a message.
cdef struct Packet:
    MxPartner *partner
    const uint8_t *data
    uint64_t match
    uint32_t message_length
    uint32_t data_length
    uint32_t offset          # of its data in the message
    uint32_t fragment
    uint16_t seqnum
    uint8_t type             # EVENT_TINY to EVENT_NOTIFY
    # Of a rndv; of a notify the first two.
    uint8_t rdma_id
    uint8_t rdma_seqnum
    uint16_t rdma_offset


cdef bint receive_event(Library library, const event *incoming) noexcept nogil:
    cdef MxPartner *partner
    count(library, COUNTER_recv_events)
    if incoming.type == EVENT_CONNECT_REQUEST:
        connect_request(library, incoming)
        return True
    partner = partner_find(library, incoming.peer_index, incoming.src_endpoint)
    if partner == NULL:
        count(library, COUNTER_recv_bad_session)
    elif EVENT_TINY <= incoming.type <= EVENT_NOTIFY:
        return receive_message(library, partner, incoming)
    elif incoming.type == EVENT_LIBACK:
        partner.heard_ns = library.now_ns
        ack_receive(library, partner, incoming)
    elif incoming.type == EVENT_CONNECT_REPLY:
        connect_reply(library, partner, incoming)
    elif incoming.type == EVENT_NACK_LIB:
        count(library, COUNTER_nacks_received)
        nack_receive(library, partner, incoming)
    return True


cdef inline bint receive_message(Library library, MxPartner *partner,
                                 const event *incoming) noexcept nogil:
    cdef Packet packet
    packet.partner = partner
    packet.match = incoming.match_info
    packet.seqnum = incoming.seqnum
    packet.type = incoming.type
    packet.offset = 0
    packet.fragment = 0
    if incoming.type == EVENT_TINY:
        packet.message_length = incoming.tiny.length
        packet.data_length = incoming.tiny.length
        packet.data = <const uint8_t *>incoming.tiny.data
    elif incoming.type == EVENT_SMALL:
        packet.message_length = incoming.small.length
        packet.data_length = incoming.small.length
        packet.data = library.driver.recvq(incoming.small.recvq_offset)
    elif incoming.type != EVENT_MEDIUM_FRAG:
        take_header(&packet, incoming)
    else:
        packet.message_length = incoming.medium.message_length
        packet.data_length = incoming.medium.frag_length
        packet.data = library.driver.recvq(incoming.medium.recvq_offset)
        packet.fragment = incoming.medium.frag_seqnum
        packet.offset = packet.fragment * library.settings.frag_bytes
        if not plausible_fragment(library, &packet):
            count(library, COUNTER_recv_bad_fragment)
            return True
    if not seqnum_same_session(packet.seqnum, partner.next_match):
        count(library, COUNTER_recv_bad_session)
        return True
    partner.heard_ns = library.now_ns
    if incoming.piggyack != partner.next_acked:
        ack_take_in(library, partner, incoming.piggyack)
    if packet.seqnum == partner.next_match:
        return receive_in_order(library, &packet)
    receive_out_of_order(library, &packet)
    return True


cdef void take_header(Packet *packet, const event *incoming) noexcept nogil:
    """Of packets that bring no data: rndv, which announces some, and notify, which has a number
    and is acknowledged like a message, but is matched to none."""
    packet.data = NULL
    packet.data_length = 0
    if incoming.type == EVENT_RNDV:
        packet.message_length = incoming.rndv.message_length
        packet.rdma_id = incoming.rndv.rdma_id
        packet.rdma_seqnum = incoming.rndv.rdma_seqnum
        packet.rdma_offset = incoming.rndv.rdma_offset
    else:
        packet.message_length = incoming.notify.transferred
        packet.rdma_id = incoming.notify.rdma_id
        packet.rdma_seqnum = incoming.notify.rdma_seqnum
        packet.match = 0


cdef inline bint plausible_fragment(Library library, const Packet *packet) noexcept nogil:
    """A fragment is full unless it is its message's last one."""
    cdef const Settings *settings = &library.settings
    if packet.message_length > settings.medium_max or packet.offset >= packet.message_length:
        return False
    return packet.data_length == min(settings.frag_bytes, packet.message_length - packet.offset)


cdef inline bint receive_in_order(Library library, Packet *packet) noexcept nogil:
    cdef MxPartner *partner = packet.partner
    if not deliver(library, packet):
        return False
    partner.next_match = seqnum_next(partner.next_match)
    if not list_empty(&partner.early):
        deliver_early(library, partner)
    all_received(library, partner)
    return True


cdef inline void all_received(Library library, MxPartner *partner) noexcept nogil:
    """Moves next_frag up to the first incomplete message; what it passes is owed an ack."""
    cdef uint16_t complete = partner.next_match
    if not list_empty(&partner.partial):
        complete = request_of_chain(partner.partial.next).seqnum
    if complete != partner.next_frag:
        partner.next_frag = complete
        ack_owe(library, partner, False)


cdef inline bint deliver(Library library, Packet *packet) noexcept nogil:
    """Matches a message by its first packet to come; False if there was no room to keep it."""
    cdef MxRequest *request
    if packet.type == EVENT_NOTIFY:
        large_notified(library, packet.partner, packet.message_length, packet.rdma_id,
                       packet.rdma_seqnum)
        return True
    request = take_receive(
        library, packet.partner, packet.match, packet.message_length,
        packet.data if packet.data_length == packet.message_length else NULL)
    if request == NULL:
        return deliver_unexpected(library, packet)
    request.partner = packet.partner
    request.match = packet.match
    request.seqnum = packet.seqnum
    request.length = packet.message_length
    if packet.type == EVENT_RNDV:
        take_window(request, packet)
        large_receive(library, request)
        return True
    take_data(request, packet)
    if request.received == request.length:
        match_finish(library, request)
    else:
        request.flags |= REQUEST_PARTIAL
        list_append(&packet.partner.partial, &request.chain)
    return True


cdef bint deliver_unexpected(Library library, const Packet *packet) noexcept nogil:
    cdef MxRequest *kept = keep(library, packet, True)
    if kept == NULL:
        count(library, COUNTER_unexpected_no_buffer)
        return False
    count(library, COUNTER_recv_unexpected)
    match_keep(library, kept)
    trace_message(library, TRACE_unexpected, packet.partner, packet.seqnum, kept.length)
    await_data(kept)
    return True


cdef inline void await_data(MxRequest *kept) noexcept nogil:
    """A kept message whose turn has come, but not all of its data."""
    if kept.flags & REQUEST_PARTIAL:
        list_append(&kept.partner.partial, &kept.chain)
    elif kept.flags & REQUEST_LARGE:
        list_append(&kept.partner.incoming, &kept.chain)


cdef inline void take_window(MxRequest *request, const Packet *packet) noexcept nogil:
    request.rdma_id = packet.rdma_id
    request.rdma_seqnum = packet.rdma_seqnum
    request.rdma_offset = packet.rdma_offset


cdef inline void take_data(MxRequest *request, const Packet *packet) noexcept nogil:
    """Copies what fits into the receive's buffer."""
    cdef uint32_t data_length = packet.data_length
    request.fragments |= <uint64_t>1 << packet.fragment
    request.received += data_length
    if packet.offset + data_length > request.capacity:
        if packet.offset == 0:
            request_keep_beginning(request, packet.data, data_length)
        if packet.offset >= request.capacity:
            return
        data_length = request.capacity - packet.offset
    copy_short(request.data + packet.offset, packet.data, data_length)


cdef MxRequest *keep(Library library, const Packet *packet, bint may_grow) noexcept nogil:
    """A message without a receive, in room of the library's own."""
    cdef MxRequest *kept
    cdef uint8_t *room = NULL
    if packet.message_length > INLINE_BYTES and packet.type <= EVENT_MEDIUM_FRAG:
        room = arena_take(&library.receive_arena, packet.message_length, may_grow)
        if room == NULL:
            return NULL
    kept = pool_take(&library.pool)
    if kept == NULL:
        if room != NULL:
            arena_give(&library.receive_arena, room)
        return NULL
    kept.kind = REQUEST_KEPT
    kept.partner = packet.partner
    kept.match = packet.match
    kept.seqnum = packet.seqnum
    kept.length = packet.message_length
    kept.capacity = packet.message_length
    kept.data = kept.inline_data
    if room != NULL:
        kept.data = room
        kept.flags = REQUEST_IN_ARENA
    if packet.type > EVENT_MEDIUM_FRAG:
        # A notify that came early stands among messages until its turn, then it is used up.
        kept.kind = REQUEST_KEPT if packet.type == EVENT_RNDV else REQUEST_NOTIFY
        kept.flags |= REQUEST_LARGE
        take_window(kept, packet)
        return kept
    take_data(kept, packet)
    if kept.received != kept.length:
        kept.flags |= REQUEST_PARTIAL
    return kept


cdef void receive_out_of_order(Library library, Packet *packet) noexcept nogil:
    cdef MxPartner *partner = packet.partner
    cdef uint32_t ahead = seqnum_distance(packet.seqnum, partner.next_match)
    cdef MxRequest *request
    if ahead <= library.settings.early_window:
        receive_early(library, packet)
    elif ahead < SEQNUM_HALF:
        count(library, COUNTER_recv_out_of_window)
    else:
        request = find_by_seqnum(&partner.partial, packet.seqnum)
        if request != NULL:
            receive_fragment(library, request, packet)
            if not request.flags & REQUEST_PARTIAL:
                list_remove(&request.chain)
            all_received(library, partner)
        else:
            count(library, COUNTER_recv_duplicate)
            ack_owe(library, partner, seqnum_next(packet.seqnum) == partner.next_frag)


cdef MxRequest *find_by_seqnum(ListLink *chain, uint16_t seqnum) noexcept nogil:
    cdef ListLink *link = chain.next
    while link != chain:
        if request_of_chain(link).seqnum == seqnum:
            return request_of_chain(link)
        link = link.next
    return NULL


cdef void receive_fragment(Library library, MxRequest *request,
                           const Packet *packet) noexcept nogil:
    """One more fragment of a message that is partly there, wherever it stands now."""
    if (
        packet.message_length != request.length
        or (packet.type > EVENT_MEDIUM_FRAG) != (request.flags & REQUEST_LARGE != 0)
    ):
        count(library, COUNTER_recv_bad_fragment)
        return
    if request.flags & REQUEST_LARGE or request.fragments & (<uint64_t>1 << packet.fragment):
        count(library, COUNTER_recv_duplicate)
        return
    take_data(request, packet)
    if request.received != request.length:
        return
    request.flags &= ~(<uint32_t>REQUEST_PARTIAL)
    if request.kind != REQUEST_KEPT:
        match_finish(library, request)


cdef void receive_early(Library library, Packet *packet) noexcept nogil:
    """Keeps a packet that overtook others; the early list is sorted by seqnum."""
    cdef MxPartner *partner = packet.partner
    cdef ListLink *place = partner.early.previous
    cdef uint32_t ahead = seqnum_distance(packet.seqnum, partner.next_match)
    cdef MxRequest *request
    while place != &partner.early:
        request = request_of_chain(place)
        if request.seqnum == packet.seqnum:
            receive_fragment(library, request, packet)
            return
        if seqnum_distance(request.seqnum, partner.next_match) < ahead:
            break
        place = place.previous
    # Half of the arena stays free for messages whose turn it is, or those could not come in.
    if library.receive_arena.free_bytes * 2 < library.receive_arena.size_bytes:
        count(library, COUNTER_medium_no_assembly)
        return
    request = keep(library, packet, False)
    if request == NULL:
        count(library, COUNTER_medium_no_assembly)
        return
    count(library, COUNTER_recv_early)
    list_insert_after(place, &request.chain)


cdef inline const uint8_t *whole(Library library, const MxRequest *kept) noexcept nogil:
    """The payload of a kept message that came in one packet, or NULL."""
    if kept.length > library.settings.frag_bytes or kept.flags & (REQUEST_PARTIAL | REQUEST_LARGE):
        return NULL
    return kept.data


cdef void deliver_early(Library library, MxPartner *partner) noexcept nogil:
    """Early messages whose turn has come are matched, complete or not."""
    cdef MxRequest *kept
    cdef MxRequest *receive
    while not list_empty(&partner.early):
        kept = request_of_chain(partner.early.next)
        if kept.seqnum != partner.next_match:
            return
        partner.next_match = seqnum_next(partner.next_match)
        list_remove(&kept.chain)
        if kept.kind == REQUEST_NOTIFY:
            large_notified(library, partner, kept.length, kept.rdma_id, kept.rdma_seqnum)
            pool_give(&library.pool, kept)
            continue
        await_data(kept)
        receive = take_receive(library, partner, kept.match, kept.length, whole(library, kept))
        if receive == NULL:
            count(library, COUNTER_recv_unexpected)
            match_keep(library, kept)
            trace_message(library, TRACE_unexpected, partner, kept.seqnum, kept.length)
        else:
            match_adopt(library, receive, kept)


# -- The application's handler of unexpected messages (Open-MX: register_unexp_handler).
#
# It is asked about a message that no posted receive takes, in the middle of the pass that found
# it, and so must not call its endpoint. If it says FINISHED, the message is received into no
# bytes: that drops its data, acknowledges it, and tells a sender that waits for the receiver,
# of a large or a synchronous message, that it was truncated.

# What a handler returns: the message waits for a receive, or is dealt with.
CONTINUE = 0
FINISHED = 1


cdef MxRequest *unexpected_ask(Library library, MxPartner *partner, uint64_t match,
                               uint32_t length, const uint8_t *data) noexcept nogil:
    cdef MxRequest *receive
    cdef bint finished
    with gil:
        finished = ask(library, partner, match, length, data)
    if not finished:
        return NULL
    receive = pool_take(&library.pool)
    if receive == NULL:
        return NULL
    count(library, COUNTER_unexpected_handled)
    receive.kind = REQUEST_RECEIVE
    receive.flags = REQUEST_FORGOTTEN
    receive.data = receive.inline_data
    receive.capacity = 0
    receive.match = match
    receive.mask = match
    return receive


cdef bint ask(Library library, MxPartner *partner, uint64_t match, uint32_t length,
              const uint8_t *data) noexcept:
    """An exception goes to sys.unraisablehook, and the message waits for a receive."""
    cdef object payload = None
    library.handler_thread = <uint64_t>PyThread_get_thread_ident()
    try:
        if data != NULL:
            # A copy, since the handler may keep it and the receive queue's room is used again.
            payload = memoryview(PyBytes_FromStringAndSize(<const char *>data, length))
        return library.unexpected_handler(
            partner_of(library, partner), match, length, payload) == FINISHED
    finally:
        library.handler_thread = 0
