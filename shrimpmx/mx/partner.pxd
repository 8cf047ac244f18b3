"""Partners: finding one, learning its session, giving it up."""

from libc.stdint cimport uint16_t, uint32_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxPartner, RequestStatus

# The partner, made if there was none; NULL if `peer_index` is not a node or memory is out.
cdef MxPartner *partner_make(Library library, uint32_t peer_index,
                             uint32_t endpoint) noexcept nogil
# Its session and the seqnum that it expects from us first, as a connect packet tells them.
# False if the packet comes from an instance that a later one has replaced.
cdef bint partner_learn(Library library, MxPartner *partner, uint32_t session,
                        uint16_t expected_seqnum) noexcept nogil
# All its requests complete with `status`; messages need a new connect.
cdef void partner_die(Library library, MxPartner *partner,
                      RequestStatus status) noexcept nogil


cdef inline MxPartner *partner_find(Library library, uint32_t peer_index,
                                    uint32_t endpoint) noexcept nogil:
    if peer_index >= library.nodes_count:
        return NULL
    return library.partners[peer_index * 256 + endpoint]
