"""From a request's end to its place in the pool, and the lists in between."""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.pool cimport arena_give, pool_give
from shrimpmx.mx.types cimport (
    INLINE_BYTES, REQUEST_BOUND, REQUEST_DONE, REQUEST_FORGOTTEN, REQUEST_IN_ARENA,
    REQUEST_IN_FLIGHT, REQUEST_RELEASED, MxRequest, RequestStatus, list_append, list_remove,
)
from shrimpmx.native.copy cimport copy_bytes


cdef inline void request_give_data(Library library, MxRequest *request) noexcept nogil:
    """Hands arena space back; which arena depends on the request's direction."""
    if request.flags & REQUEST_IN_ARENA:
        request.flags &= ~(<uint32_t>REQUEST_IN_ARENA)
        if request.flags & REQUEST_IN_FLIGHT:
            arena_give(&library.send_arena, request.data)
        else:
            arena_give(&library.receive_arena, request.data)
        request.data = NULL


cdef inline void request_keep_beginning(MxRequest *receive, const uint8_t *data,
                                        uint32_t length) noexcept nogil:
    """Of a message that is too long for its receive, which may have no room at all."""
    copy_bytes(receive.inline_data, data, min(length, <uint32_t>INLINE_BYTES))


cdef inline void request_complete(Library library, MxRequest *request,
                                  RequestStatus status) noexcept nogil:
    """The user's test finds it done. Never called twice for one request."""
    request.status = <unsigned char>status
    request.flags |= REQUEST_DONE
    library.request.completions += 1
    if request.flags & REQUEST_FORGOTTEN:
        list_append(&library.request.forgotten, &request.ending)
    elif request.flags & REQUEST_BOUND:
        list_append(&library.request.completed, &request.ending)


cdef inline void request_release(Library library, MxRequest *request) noexcept nogil:
    """The user is through with a completed request; a zombie lives on until it is acked."""
    if request.flags & (REQUEST_BOUND | REQUEST_FORGOTTEN):
        list_remove(&request.ending)
    if request.flags & REQUEST_IN_FLIGHT:
        request.flags |= REQUEST_RELEASED
    else:
        pool_give(&library.pool, request)


cdef inline void request_own(Library library, MxRequest *request, void *owner) noexcept nogil:
    """A Python Request owns it from now on."""
    request.owner = owner
    request.flags |= REQUEST_BOUND
    if request.flags & REQUEST_DONE:
        list_append(&library.request.completed, &request.ending)


cdef inline void request_forget(Library library, MxRequest *request) noexcept nogil:
    """No call will test it: it is given back when it is done (see handles.reap_forgotten)."""
    request.flags |= REQUEST_FORGOTTEN
    if request.flags & REQUEST_DONE:
        list_remove(&request.ending)
        list_append(&library.request.forgotten, &request.ending)
