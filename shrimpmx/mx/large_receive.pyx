"""Large messages, the receiver's side (Open-MX: omx_large.c).

A receive that matches a rndv registers its buffer and starts a pull, which the driver carries
on alone. When that has ended the receive is done, and a notify, numbered and resent like a
message, tells the sender how much was pulled. Whatever a pull needs and cannot get, it waits
for in the list of the delayed, in order. What would be one pull too many over
the network (`pulls_max`, ours) waits in a list of its own, and holds up nothing else.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.costs.meter cimport pay_copy
from shrimpmx.host.pull cimport pull_start
from shrimpmx.host.regions cimport region_create
from shrimpmx.mx.large cimport large_own_region, large_release
from shrimpmx.mx.library cimport Library, count, trace_message
from shrimpmx.mx.match cimport match_finish, match_remove
from shrimpmx.mx.memory cimport REACH_NEVER, memory_give, memory_reach
from shrimpmx.mx.partner cimport nack_status
from shrimpmx.mx.pool cimport pool_give, pool_take
from shrimpmx.mx.request cimport request_complete
from shrimpmx.mx.send cimport send_notify
from shrimpmx.mx.types cimport (
    REQUEST_KEPT, REQUEST_LARGE, REQUEST_NOTIFY, REQUEST_PULLING, REQUEST_SEND, REQUEST_TAKEN,
    STATUS_ABORTED, STATUS_BAD_BUFFER, STATUS_BAD_RDMA_WINDOW, STATUS_NO_RESOURCES, STATUS_SUCCESS,
    STATUS_UNREACHABLE, MxPartner, MxRequest, RequestStatus, list_append, list_empty,
    list_insert_after, list_remove, request_of_chain, request_of_queue,
)
from shrimpmx.native.trace cimport TRACE_pull_start, TRACE_rndv_matched, trace_record
from shrimpmx.shared.layout cimport (
    COUNTER_pulls_failed, COUNTER_pulls_started, COUNTER_pulls_waited, ENDPOINT_REGIONS,
    PULL_ABORTED, PULL_OK, PULL_TIMED_OUT, PULL_UNWRITABLE, event,
)
from shrimpmx.wire.wire cimport NACK_BAD_REGION


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
    reached = memory_reach(library, receive.data, wanted, &receive.reach)
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
    if status != STATUS_SUCCESS:
        transferred = 0
    elif receive.reach.bounced:
        memcpy(receive.data, receive.reach.start, transferred)
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
