"""Partners: finding one, learning its session, giving it up."""

from libc.stdint cimport uint16_t, uint32_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxPartner, RequestStatus

# The partner, made if there was none; NULL if `peer_index` is not a node or memory is out.
cdef MxPartner *partner_make(Library library, uint32_t peer_index,
                             uint32_t endpoint) noexcept nogil
cdef enum Learned:
    LEARNED_STALE            # nothing: from an instance that a later one has replaced
    LEARNED                  # its identity, and what it expects
    LEARNED_ANEW             # ... and what we expect from it has changed, which it must be told

# Its session and the seqnum that it expects from us first, as a connect packet tells them.
cdef Learned partner_learn(Library library, MxPartner *partner, uint32_t session,
                           uint16_t expected_seqnum) noexcept nogil
# All its requests complete with `status`; messages need a new connect.
cdef void partner_die(Library library, MxPartner *partner,
                      RequestStatus status) noexcept nogil
# What a nack of that type (enum wire_nack) means to the user.
cdef RequestStatus nack_status(uint32_t nack_type) noexcept nogil
# A local partner refused a message, with that type. Its requests cannot end while a pass
# walks the lists that they stand in: they do at its end.
cdef void partner_refused(Library library, MxPartner *partner, uint32_t nack_type) noexcept nogil
cdef void partners_end_refused(Library library) noexcept nogil


cdef inline MxPartner *partner_find(Library library, uint32_t peer_index,
                                    uint32_t endpoint) noexcept nogil:
    if (peer_index >= library.settings.nodes_count
            or endpoint >= library.partner.row_sizes[peer_index]):
        return NULL
    return library.partner.rows[peer_index][endpoint]
