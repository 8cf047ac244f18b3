"""Large messages, the sender's side, and below it the receiver's (Open-MX: omx_large.c).

A large message's data stays in the sender's buffer, registered as a memory region, until the
receiver has pulled it. The rndv packet is numbered, acknowledged and resent like an eager
message. Once it is acknowledged the send waits for the notify, which tells how much was
pulled. Open-MX waits for that without end; here a receiver from which nothing is heard is asked
by a duplicate: a living one acknowledges it, a closed one refuses it, and a silent one is given
up after as many resends as for an eager message. The duplicate is a rndv under the number of
the newest message that it has acknowledged. The send's own number would not do: once half of
all numbers have gone by since, it looks like one that is still to come.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport pay_copy
from shrimpmx.host.pull cimport pull_start
from shrimpmx.host.regions cimport REGION_PROCESS, region_create, region_destroy
from shrimpmx.host.send_commands cimport Envelope
from shrimpmx.mx.library cimport (
    REACH_NEVER, Library, count, memory_empty, memory_fill, memory_give, memory_reach,
    trace_message,
)
from shrimpmx.mx.partner cimport nack_status, partner_die, partner_refused
from shrimpmx.mx.pool cimport pool_give, pool_take
from shrimpmx.mx.recv cimport match_finish, match_remove
from shrimpmx.mx.request cimport request_complete
from shrimpmx.mx.send cimport envelope_to, send_end, send_notify, send_throttled
from shrimpmx.mx.types cimport (
    LARGE_SENDS_MAX, REQUEST_ACKED, REQUEST_DONE, REQUEST_IN_FLIGHT, REQUEST_KEPT, REQUEST_LARGE,
    REQUEST_NOTIFY, REQUEST_POSTING, REQUEST_PULLING, REQUEST_SEND, REQUEST_TAKEN, SEQNUM_MASK,
    SEQNUM_SESSION_MASK, STATUS_ABORTED, STATUS_BAD_BUFFER, STATUS_BAD_RDMA_WINDOW,
    STATUS_CANCELLED, STATUS_NO_RESOURCES, STATUS_SUCCESS, STATUS_TRUNCATED, STATUS_UNREACHABLE,
    ListLink, MxPartner, MxRequest, RequestStatus, list_append, list_empty, list_insert_after,
    list_remove, partner_of_waiting, request_of_chain, request_of_queue,
)
from shrimpmx.native.trace cimport (
    TRACE_notified, TRACE_pull_start, TRACE_resend, TRACE_rndv_matched, trace_record,
)
from shrimpmx.shared.layout cimport (
    ENDPOINT_REGIONS, PULL_ABORTED, PULL_OK, PULL_TIMED_OUT, PULL_UNWRITABLE, COUNTER_pulls_failed,
    COUNTER_pulls_started, COUNTER_pulls_waited, COUNTER_recv_bad_notify, event,
)
from shrimpmx.wire.wire cimport NACK_BAD_REGION


cdef LargeReady large_prepare(Library library, MxRequest *request) noexcept nogil:
    cdef LargeReady ready = LARGE_WAITS
    if library.large.sends < LARGE_SENDS_MAX and library.large.regions_used < ENDPOINT_REGIONS:
        ready = reach_data(library, request)
    if ready == LARGE_READY:
        request.region = region_create(library.driver, request.reach.kind, request.reach.start,
                                       request.length, &request.rdma_seqnum)
        if request.region < 0:
            give_data(library, request)
            ready = LARGE_WAITS
    if ready == LARGE_READY:
        request.rdma_id = <unsigned char>request.region
        large_own_region(library, request)
        library.large.sends += 1
    elif ready == LARGE_WAITS and list_empty(&request.partner.waiting):
        list_append(&library.large.waiting_partners, &request.partner.waiting)
    return ready


cdef LargeReady reach_data(Library library, MxRequest *request) noexcept nogil:
    """How the data can be read. Bounce buffers of sends fill at most half of the heap: a
    receive that needs one to answer another rank's send always finds room in time."""
    cdef int reached
    if request.length == 0:
        request.reach.kind = REGION_PROCESS  # nothing will be read there
        request.reach.start = request.data
        request.reach.bounced = False
        return LARGE_READY
    reached = memory_reach(library, request.data, request.length, not request.partner.local,
                           &request.reach)
    if reached != 0:
        return LARGE_NEVER if reached == REACH_NEVER else LARGE_WAITS
    if not request.reach.bounced:
        return LARGE_READY
    library.large.bounced_bytes += request.length
    if library.large.bounced_bytes > library.heap.size_bytes // 2:
        give_data(library, request)
        return LARGE_WAITS
    if not memory_fill(library, &request.reach, request.data, request.length):
        give_data(library, request)  # the handler finds what cannot be read, and tells
        memory_reach(library, request.data, request.length, False, &request.reach)
    return LARGE_READY


cdef inline void give_data(Library library, MxRequest *request) noexcept nogil:
    if request.reach.bounced and request.kind == REQUEST_SEND:
        library.large.bounced_bytes -= request.length
    memory_give(library, &request.reach)


cdef void large_release(Library library, MxRequest *request) noexcept nogil:
    if request.region >= 0:
        region_destroy(library.driver, request.region)
        library.large.region_owners[request.region] = NULL
        library.large.regions_used -= 1
        if request.kind == REQUEST_SEND:
            library.large.sends -= 1
        request.region = -1
    give_data(library, request)


cdef int large_transmit(Library library, MxRequest *request) noexcept nogil:
    return transmit_as(library, request, request.seqnum)


cdef inline int transmit_as(Library library, MxRequest *request, uint16_t seqnum) noexcept nogil:
    cdef Envelope envelope = envelope_to(
        request.partner, request.partner.true_session, seqnum, request.match)
    return library.driver.send_rndv(
        &envelope, request.length, request.rdma_id, request.rdma_seqnum, 0)


cdef void large_acked(Library library, MxRequest *request) noexcept nogil:
    if request.region < 0:  # the notify came first
        send_end(library, request, STATUS_SUCCESS)
        return
    list_remove(&request.queue)
    list_remove(&request.chain)
    request.flags &= ~(<uint32_t>REQUEST_POSTING)
    request.flags |= REQUEST_ACKED
    request.resends = 0
    request.sent_ns = library.now_ns
    list_append(&request.partner.large, &request.chain)
    list_append(&library.large.unnotified, &request.queue)


cdef void large_notified(Library library, MxPartner *partner, uint32_t transferred,
                         uint32_t rdma_id, uint32_t rdma_seqnum) noexcept nogil:
    cdef MxRequest *request = send_of_region(library, rdma_id, rdma_seqnum)
    cdef RequestStatus status = STATUS_SUCCESS
    if request == NULL or request.partner != partner:
        count(library, COUNTER_recv_bad_notify)
        return
    request.received = min(transferred, request.length)
    if request.received < request.length:
        status = STATUS_TRUNCATED
    trace_message(library, TRACE_notified, partner, request.seqnum, request.received)
    end_pulled(library, request, status)


cdef void large_unreadable(Library library, const event *incoming) noexcept nogil:
    cdef MxRequest *request = send_of_region(library, incoming.unreadable.rdma_id,
                                             incoming.unreadable.rdma_seqnum)
    if request != NULL:
        end_pulled(library, request, STATUS_BAD_BUFFER)


cdef bint large_withdraw(Library library, MxRequest *request) noexcept nogil:
    if request.flags & REQUEST_DONE:
        return True
    if not request.flags & REQUEST_LARGE:
        return False
    if request.region >= 0:
        end_pulled(library, request, STATUS_CANCELLED)
        return True
    list_remove(&request.queue)  # of those that wait for their turn
    request.flags &= ~(<uint32_t>(REQUEST_IN_FLIGHT | REQUEST_POSTING))
    request_complete(library, request, STATUS_CANCELLED)
    return True


cdef inline MxRequest *send_of_region(Library library, uint32_t rdma_id,
                                      uint32_t rdma_seqnum) noexcept nogil:
    cdef MxRequest *request = library.large.region_owners[rdma_id]
    if request == NULL or request.kind != REQUEST_SEND or request.rdma_seqnum != rdma_seqnum:
        return NULL
    return request


cdef inline void end_pulled(Library library, MxRequest *request,
                            RequestStatus status) noexcept nogil:
    """Nothing of a send's data is pulled any more."""
    large_release(library, request)
    if request.flags & REQUEST_ACKED:
        send_end(library, request, status)
    else:
        # An older message of ours is incomplete over there, so that no ack covers this one.
        request_complete(library, request, status)


cdef bint large_asks(const MxPartner *partner, uint16_t seqnum) noexcept nogil:
    return not list_empty(&partner.large) and seqnum == question_of(partner)


cdef inline uint16_t question_of(const MxPartner *partner) noexcept nogil:
    """The number of the newest acknowledged message. There is one: a send is in `large` only
    when it is acknowledged itself. All in flight are newer, and fewer than half of the numbers,
    so that the receiver cannot take it for anything but a duplicate."""
    return (partner.next_acked & SEQNUM_SESSION_MASK) | ((partner.next_acked - 1) & SEQNUM_MASK)


cdef void large_retry_sends(Library library) noexcept nogil:
    """Each partner goes to the end of the queue when it has launched one, so that all get room."""
    cdef ListLink *last = library.large.waiting_partners.previous
    cdef ListLink *link = &library.large.waiting_partners
    cdef ListLink *next = link.next
    cdef MxPartner *partner
    cdef uint32_t sends
    while link != last and next != &library.large.waiting_partners:
        link = next
        next = link.next
        partner = partner_of_waiting(link)
        sends = library.large.sends
        if sends >= LARGE_SENDS_MAX:
            return
        send_throttled(library, partner)
        if library.large.sends != sends and not list_empty(&partner.waiting):
            list_remove(&partner.waiting)
            list_append(&library.large.waiting_partners, &partner.waiting)


cdef void large_keep_alive(Library library) noexcept nogil:
    cdef MxRequest *request
    cdef MxPartner *partner
    cdef int sent
    while not list_empty(&library.large.unnotified):
        request = request_of_queue(library.large.unnotified.next)
        if request.sent_ns + library.settings.resend_delay_ns > library.now_ns:
            return
        partner = request.partner
        if partner.heard_ns >= request.sent_ns:
            request.resends = 0
        elif request.resends >= (request.resends_max or library.send.resends_max):
            partner_die(library, partner, STATUS_UNREACHABLE)
            continue
        # One question is enough for all messages of a partner.
        elif partner.large.next == &request.chain:
            sent = transmit_as(library, request, question_of(partner))
            if sent < 0:
                partner_refused(library, partner, -sent)
            elif sent > 0:
                request.resends += 1
                trace_message(library, TRACE_resend, partner, request.seqnum, request.length)
        request.sent_ns = library.now_ns
        list_remove(&request.queue)
        list_append(&library.large.unnotified, &request.queue)


cdef void large_drop(Library library, MxPartner *partner, RequestStatus status) noexcept nogil:
    cdef MxRequest *request
    while not list_empty(&partner.large):
        request = request_of_chain(partner.large.next)
        large_release(library, request)
        send_end(library, request, status)
    list_remove(&partner.waiting)
    large_receives_drop(library, partner, status)


cdef void large_forget_all(Library library) noexcept:
    cdef uint32_t id
    if library.large.region_owners == NULL:
        return
    for id in range(<uint32_t>ENDPOINT_REGIONS):
        if library.large.region_owners[id] != NULL:
            give_data(library, library.large.region_owners[id])
            library.large.region_owners[id] = NULL


# -- Large messages, the receiver's side (Open-MX: omx_large.c).
#
# A receive that matches a rndv registers its buffer and starts a pull, which the driver carries
# on alone. When that has ended the receive is done, and a notify, numbered and resent like a
# message, tells the sender how much was pulled. Whatever a pull needs and cannot get, it waits
# for in the list of the delayed, in order. What would be one pull too many over
# the network (`pulls_max`, ours) waits in a list of its own, and holds up nothing else.

cdef void large_receive(Library library, MxRequest *receive) noexcept nogil:
    receive.flags |= REQUEST_LARGE
    list_append(&receive.partner.incoming, &receive.chain)
    trace_message(library, TRACE_rndv_matched, receive.partner, receive.seqnum, receive.length)
    if receive.partner.local:
        begin(library, receive)
    elif library.large_receive.running < library.settings.pulls_max:
        admit(library, receive)
    else:
        count(library, COUNTER_pulls_waited)
        list_append(&library.large_receive.held_back, &receive.queue)


cdef inline void admit(Library library, MxRequest *receive) noexcept nogil:
    receive.flags |= REQUEST_PULLING
    library.large_receive.running += 1
    begin(library, receive)


cdef void begin(Library library, MxRequest *receive) noexcept nogil:
    if not list_empty(&library.large_receive.delayed) or not pull(library, receive):
        count(library, COUNTER_pulls_waited)
        list_append(&library.large_receive.delayed, &receive.queue)


cdef void large_adopt(Library library, MxRequest *receive, MxRequest *kept) noexcept nogil:
    receive.partner = kept.partner
    receive.match = kept.match
    receive.seqnum = kept.seqnum
    receive.length = kept.length
    receive.rdma_id = kept.rdma_id
    receive.rdma_seqnum = kept.rdma_seqnum
    receive.rdma_offset = kept.rdma_offset
    match_remove(library, kept)
    list_remove(&kept.chain)
    pool_give(&library.pool, kept)
    large_receive(library, receive)


cdef void large_retry_receives(Library library) noexcept nogil:
    cdef MxRequest *receive
    library.large_receive.found_no_room = False
    while not list_empty(&library.large_receive.delayed):
        receive = request_of_queue(library.large_receive.delayed.next)
        list_remove(&receive.queue)
        if not pull(library, receive):
            list_insert_after(&library.large_receive.delayed, &receive.queue)
            return


cdef void large_admit_receives(Library library) noexcept nogil:
    cdef MxRequest *receive
    while (
        library.large_receive.running < library.settings.pulls_max
        and not list_empty(&library.large_receive.held_back)
    ):
        receive = request_of_queue(library.large_receive.held_back.next)
        list_remove(&receive.queue)
        admit(library, receive)


cdef bint pull(Library library, MxRequest *receive) noexcept nogil:
    """Starts to pull what the receive has room for; False: not now."""
    cdef MxPartner *partner = receive.partner
    cdef uint32_t wanted = min(receive.length, receive.capacity)
    cdef int started
    # Taken now, so that the sender can be told whatever happens.
    if receive.notify == NULL:
        receive.notify = pool_take(&library.pool)
        if receive.notify == NULL:
            return False
    if wanted == 0:
        finish(library, receive, 0, STATUS_SUCCESS)
        return True
    if receive.region < 0:
        started = register_buffer(library, receive, wanted)
        if started <= 0:
            if started < 0:
                finish(library, receive, 0, STATUS_NO_RESOURCES)
            return started < 0
    started = pull_start(
        library.driver, library.host.now_c(), partner.peer_index, partner.endpoint,
        partner.back_session, wanted, receive.rdma_id, receive.rdma_seqnum, receive.rdma_offset,
        <uint32_t>receive.region, receive.cookie)
    if started == 0:
        library.large_receive.found_no_room = True
        return False
    if started < 0:
        finish(library, receive, 0, pull_status_of(<uint32_t>-started))
        return True
    count(library, COUNTER_pulls_started)
    if partner.local:  # this rank has copied it
        library.host.charge(pay_copy(&library.host.meter, wanted))
    if library.trace != NULL:
        trace_record(library.trace, library.host.now_c(), TRACE_pull_start, receive.cookie,
                     wanted)
    return True


cdef int register_buffer(Library library, MxRequest *receive, uint32_t wanted) noexcept nogil:
    """1; 0: not now; -1: never."""
    cdef uint8_t unused
    cdef int reached
    if library.large.regions_used >= ENDPOINT_REGIONS:
        return 0
    reached = memory_reach(library, receive.data, wanted, not receive.partner.local,
                           &receive.reach)
    if reached != 0:
        return -1 if reached == REACH_NEVER else 0
    receive.region = region_create(library.driver, receive.reach.kind, receive.reach.start, wanted,
                                   &unused)
    if receive.region < 0:
        memory_give(library, &receive.reach)
        return 0
    large_own_region(library, receive)
    # Tells this pull from all others: an event of one that was given up is ignored.
    library.large_receive.pulls += 1
    receive.cookie = library.large_receive.pulls * ENDPOINT_REGIONS + <uint64_t>receive.region
    return 1


cdef RequestStatus pull_status_of(uint32_t status) noexcept nogil:
    """What a pull_status or wire_nack means to the user (Open-MX)."""
    if status == PULL_OK:
        return STATUS_SUCCESS
    if status == PULL_ABORTED:
        return STATUS_ABORTED
    if status == PULL_TIMED_OUT:
        return STATUS_UNREACHABLE
    if status == PULL_UNWRITABLE:
        return STATUS_BAD_BUFFER
    return STATUS_BAD_RDMA_WINDOW if status == NACK_BAD_REGION else nack_status(status)


cdef void large_pull_done(Library library, const event *incoming) noexcept nogil:
    cdef uint64_t cookie = incoming.pull_done.cookie
    cdef MxRequest *receive
    receive = library.large.region_owners[cookie % ENDPOINT_REGIONS]
    if receive == NULL or receive.kind == REQUEST_SEND or receive.cookie != cookie:
        return  # its conversation ended before
    finish(library, receive, incoming.pull_done.transferred,
           pull_status_of(incoming.pull_done.status))


cdef inline void pull_ended(Library library, MxRequest *receive) noexcept nogil:
    if receive.flags & REQUEST_PULLING:
        receive.flags &= ~(<uint32_t>REQUEST_PULLING)
        library.large_receive.running -= 1


cdef void finish(Library library, MxRequest *receive, uint32_t transferred,
                 RequestStatus status) noexcept nogil:
    """The receive is done, and its sender is told."""
    if (status == STATUS_SUCCESS and receive.reach.bounced
            and not memory_empty(library, &receive.reach, receive.data, transferred)):
        status = STATUS_BAD_BUFFER
    if status != STATUS_SUCCESS:
        transferred = 0
    pull_ended(library, receive)
    large_release(library, receive)
    list_remove(&receive.chain)
    tell(library, receive, transferred)
    if status == STATUS_SUCCESS:
        receive.received = receive.length
        match_finish(library, receive)
    else:
        count(library, COUNTER_pulls_failed)
        request_complete(library, receive, status)


cdef void tell(Library library, MxRequest *receive, uint32_t transferred) noexcept nogil:
    cdef MxRequest *notify = receive.notify
    receive.notify = NULL
    if not receive.partner.can_send:
        pool_give(&library.pool, notify)
        return
    notify.kind = REQUEST_NOTIFY
    notify.partner = receive.partner
    notify.data = NULL
    notify.match = receive.match
    notify.length = transferred
    notify.rdma_id = receive.rdma_id
    notify.rdma_seqnum = receive.rdma_seqnum
    send_notify(library, notify)


cdef void large_receives_drop(Library library, MxPartner *partner,
                              RequestStatus status) noexcept nogil:
    cdef MxRequest *request
    while not list_empty(&partner.incoming):
        request = request_of_chain(partner.incoming.next)
        list_remove(&request.chain)
        if request.kind == REQUEST_KEPT:
            match_remove(library, request)
            if request.sender != NULL:  # sent to ourselves
                request_complete(library, request.sender, status)
                request.sender = NULL
            if request.flags & REQUEST_TAKEN:
                request_complete(library, request, status)
            else:
                pool_give(&library.pool, request)
            continue
        # A pull that still runs finds its region gone, and ends without harm.
        pull_ended(library, request)
        large_release(library, request)
        list_remove(&request.queue)
        if request.notify != NULL:
            pool_give(&library.pool, request.notify)
            request.notify = NULL
        count(library, COUNTER_pulls_failed)
        request_complete(library, request, status)
