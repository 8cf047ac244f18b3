"""The application's handler of unexpected messages."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.match cimport match_take_posted
from shrimpmx.mx.types cimport MxPartner, MxRequest

# Asks the handler. NULL: the message goes on as an unexpected one; else the handler has
# finished it, and this receive, which takes no bytes and is never tested, swallows it.
cdef MxRequest *unexpected_ask(Library library, MxPartner *partner, uint64_t match,
                               uint32_t length, const uint8_t *data) noexcept nogil


cdef inline MxRequest *take_receive(Library library, MxPartner *partner, uint64_t match,
                                    uint32_t length, const uint8_t *data) noexcept nogil:
    """The receive for a message that has come, no longer posted; NULL: it is unexpected.

    `data`: the whole payload, if it is at hand, or NULL.
    """
    cdef MxRequest *receive = match_take_posted(library, match)
    if receive == NULL and library.unexpected_handler is not None:
        return unexpected_ask(library, partner, match, length, data)
    return receive
