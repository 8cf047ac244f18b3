"""Sending: messages, notifies and connect requests, resends, and waiting for room."""

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from shrimpmx.host.send_commands cimport packet_head
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxPartner, MxRequest

# Starts a send; NULL only if memory is out. Then ring the doorbell. `synchronous`: it is done
# only when a receive has taken the message.
cdef MxRequest *send_start(Library library, MxPartner *partner, const void *data,
                           uint32_t length, uint64_t match, bint synchronous) noexcept nogil
# Sends a notify that is filled in; nobody hears when it is acknowledged.
cdef void send_notify(Library library, MxRequest *notify) noexcept nogil
# Puts a request's packets (or what is left of them) into the tx ring.
cdef void send_post(Library library, MxRequest *request) noexcept nogil
# Sends of a partner that were held back, as far as they may go now.
cdef void send_throttled(Library library, MxPartner *partner) noexcept nogil
# Requests that had found the tx ring full.
cdef void send_starved(Library library) noexcept nogil
# Requests whose answer is overdue go out again; after too many times the partner is dead.
cdef void send_overdue(Library library) noexcept nogil
# Requests sent since the last pass went out about now.
cdef void send_stamp(Library library) noexcept nogil


cdef inline packet_head head_to(const MxPartner *partner, uint32_t session, uint16_t seqnum,
                                uint64_t match) noexcept nogil:
    """The head of a packet to a partner; with it goes what we have received of its messages."""
    cdef packet_head head
    head.peer = partner.peer_index
    head.dst_endpoint = partner.endpoint
    head.session = session
    head.seqnum = seqnum
    head.piggyack = partner.next_frag
    head.match = match
    return head
