"""The application's handler of unexpected messages (Open-MX: register_unexp_handler).

It is asked about a message that no posted receive takes, in the middle of the pass that found
it, and so must not call its endpoint. If it says FINISHED, the message is received into no
bytes: that drops its data, acknowledges it, and tells a sender that waits for the receiver,
of a large or a synchronous message, that it was truncated.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.mx.handles cimport partner_of
from shrimpmx.mx.library cimport Library, count
from shrimpmx.mx.pool cimport pool_take
from shrimpmx.mx.types cimport REQUEST_FORGOTTEN, REQUEST_RECEIVE, MxPartner, MxRequest
from shrimpmx.shared.layout cimport COUNTER_unexpected_handled

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
