"""Receiving: what events of the rings do to partners, messages and requests; matching."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.match_table cimport (
    matching_keep, matching_post, matching_remove, matching_take_posted, matching_unexpected,
)
from shrimpmx.mx.types cimport MxPartner, MxRequest
from shrimpmx.shared.layout cimport event

# -- Matching: posted receives and unexpected messages, each in the order they came.

# Posts a receive, or takes the oldest unexpected message that it matches. NULL only if
# memory is out. Precondition: no bit of `match` lies outside `mask`.
cdef MxRequest *match_receive(Library library, void *data, uint32_t capacity, uint64_t match,
                              uint64_t mask) noexcept nogil
# Takes a posted receive back: True if it was still waiting; it is done with `cancelled`.
cdef bint match_cancel(Library library, MxRequest *request) noexcept nogil
# What a kept message has received moves to a receive that matches it; `kept` is gone.
cdef void match_adopt(Library library, MxRequest *receive, MxRequest *kept) noexcept nogil
# All of the message is there.
cdef void match_finish(Library library, MxRequest *receive) noexcept nogil


cdef inline void match_post(Library library, MxRequest *receive) noexcept nogil:
    """A receive waits for a message."""
    matching_post(&library.matching, receive)


cdef inline MxRequest *match_take_posted(Library library, uint64_t match) noexcept nogil:
    """The oldest posted receive that takes a message of `match`, no longer posted; or NULL."""
    return matching_take_posted(&library.matching, match)


cdef inline void match_keep(Library library, MxRequest *kept) noexcept nogil:
    """A message waits for a receive."""
    matching_keep(&library.matching, kept)


cdef inline MxRequest *match_unexpected(Library library, uint64_t match,
                                        uint64_t mask) noexcept nogil:
    """The oldest unexpected message that fits, or NULL."""
    return matching_unexpected(&library.matching, match, mask)


cdef inline void match_remove(Library library, MxRequest *request) noexcept nogil:
    """No longer posted or kept; harmless if it was neither."""
    matching_remove(&library.matching, request)


# One event of the unexpected ring; its data may be reused when this returns. False: there is no
# memory for its message, and it stays.
cdef bint receive_event(Library library, const event *incoming) noexcept nogil


# -- The application's handler of unexpected messages.

# Asks the handler. NULL: the message goes on as an unexpected one; else the handler has
# finished it, and this receive, which takes no bytes and is never tested, swallows it.
cdef MxRequest *unexpected_ask(Library library, MxPartner *partner, uint64_t match,
                               uint32_t length, const uint8_t *data) noexcept nogil


cdef inline bint receive_matched(Library library, uint64_t bits) noexcept nogil:
    """Whether a message with any of these match bits was received since the last one that was."""
    cdef bint found = library.receive.matches & bits != 0
    if found:
        library.receive.matches = 0
    return found


cdef inline MxRequest *take_receive(Library library, MxPartner *partner, uint64_t match,
                                    uint32_t length, const uint8_t *data) noexcept nogil:
    """The receive for a message that has come, no longer posted; NULL: it is unexpected.

    `data`: the whole payload, if it is at hand, or NULL.
    """
    cdef MxRequest *receive = match_take_posted(library, match)
    if receive == NULL and library.unexpected_handler is not None:
        return unexpected_ask(library, partner, match, length, data)
    return receive
