"""Matching: posted receives and unexpected messages, each in the order they came."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxRequest

# Posts a receive, or takes the oldest unexpected message that it matches. NULL only if
# memory is out. Precondition: no bit of `match` lies outside `mask`.
cdef MxRequest *match_receive(Library library, void *data, uint32_t capacity, uint64_t match,
                              uint64_t mask) noexcept nogil
# The oldest unexpected message that fits, or NULL.
cdef MxRequest *match_unexpected(Library library, uint64_t match,
                                 uint64_t mask) noexcept nogil
# Takes a posted receive back: True if it was still waiting; it is done with `cancelled`.
cdef bint match_cancel(Library library, MxRequest *request) noexcept nogil
# What a kept message has received moves to a receive that matches it; `kept` is gone.
cdef void match_adopt(Library library, MxRequest *receive, MxRequest *kept) noexcept nogil
# All of the message is there.
cdef void match_finish(Library library, MxRequest *receive) noexcept nogil
