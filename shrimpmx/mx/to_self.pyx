"""Messages of an endpoint to itself: copied by the library, without packets (Open-MX).

Nothing can be lost or overtaken on this way, so that there are no sequence numbers, no
acknowledgements and no resends. The receive that takes a message is found as for any other.
A sender that still has the data when it is received learns whether it was truncated.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.mx.library cimport Library, count, trace_message
from shrimpmx.mx.match cimport match_finish, match_keep
from shrimpmx.mx.pool cimport arena_take, pool_give, pool_take
from shrimpmx.mx.request cimport request_complete
from shrimpmx.mx.types cimport (
    INLINE_BYTES, REQUEST_IN_ARENA, REQUEST_KEPT, REQUEST_SEND, STATUS_SUCCESS, STATUS_TRUNCATED,
    MxPartner, MxRequest, list_append,
)
from shrimpmx.mx.unexpected cimport take_receive
from shrimpmx.native.trace cimport TRACE_isend, TRACE_unexpected
from shrimpmx.shared.layout cimport COUNTER_recv_unexpected, COUNTER_sent_self


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
    if request.received != 0:
        memcpy(receive.data, request.data, request.received)
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
    memcpy(kept.data, request.data, request.length)
    return True
