"""Matching of 64 bits under a mask (Open-MX: omx_recv.c).

A posted receive takes a message if `receive.match == (receive.mask & message.match)`.
The oldest that fits is taken on either side (match_table), so that messages of one partner
that fit the same receives are received in the order in which they were sent.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.mx.large_receive cimport large_adopt
from shrimpmx.mx.library cimport Library, count, trace_message
from shrimpmx.mx.pool cimport pool_give, pool_take
from shrimpmx.mx.request cimport request_complete, request_give_data
from shrimpmx.mx.to_self cimport end_send_to_self
from shrimpmx.mx.types cimport (
    REQUEST_DONE, REQUEST_LARGE, REQUEST_PARTIAL, REQUEST_POSTED, REQUEST_RECEIVE, STATUS_CANCELLED,
    STATUS_SUCCESS, STATUS_TRUNCATED, MxRequest, RequestStatus, list_insert_after, list_remove,
)
from shrimpmx.native.trace cimport TRACE_received
from shrimpmx.shared.layout cimport COUNTER_cancelled, COUNTER_recv_messages, COUNTER_truncated


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
    if receive.capacity != 0 and kept.length != 0:
        memcpy(receive.data, kept.data, min(receive.capacity, kept.length))
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
    count(library, COUNTER_recv_messages)
    trace_message(library, TRACE_received, receive.partner, receive.seqnum, receive.length)
    if receive.length > receive.capacity:
        count(library, COUNTER_truncated)
        request_complete(library, receive, STATUS_TRUNCATED)
    else:
        request_complete(library, receive, STATUS_SUCCESS)
