"""Connecting: requests, replies, and the nacks that refuse them."""

from libc.stdint cimport uint32_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxPartner, MxRequest
from shrimpmx.shared.layout cimport event

# Asks a partner for its session; NULL only if memory is out. Then ring the doorbell.
cdef MxRequest *connect_start(Library library, MxPartner *partner,
                              uint32_t key) noexcept nogil
# Connects two endpoints of one process without packets; NULL if memory is out.
cdef MxPartner *connect_known(Library library, Library other) noexcept nogil
# Takes a connect request back: it is done with `cancelled`.
cdef void connect_cancel(Library library, MxRequest *request) noexcept nogil
cdef void connect_request(Library library, const event *incoming) noexcept nogil
cdef void connect_reply(Library library, MxPartner *partner,
                        const event *incoming) noexcept nogil
# A nack-lib event, of a connect request or of a message.
cdef void nack_receive(Library library, MxPartner *partner,
                       const event *incoming) noexcept nogil
# Sends what is pending once more, as new requests: what they told has changed since. Until one
# is answered nothing may be sent to the partner.
cdef void connects_ask_again(Library library, MxPartner *partner) noexcept nogil
