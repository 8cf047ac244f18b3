"""Partners: finding one, connecting, learning its session, acknowledging, giving it up."""

from libc.stdint cimport uint16_t, uint32_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport ACK_NOW, MxPartner, MxRequest, RequestStatus
from shrimpmx.shared.layout cimport event

# -- Acknowledgements: taking them in, and giving them piggybacked, delayed or at once.

# Our partner has everything below `acked`, which differs from what we knew.
cdef void ack_take_in(Library library, MxPartner *partner, uint16_t acked) noexcept nogil
# A liback event.
cdef void ack_receive(Library library, MxPartner *partner, const event *incoming) noexcept nogil
# For ack_owe(): a partner that we know and owe none that goes at the end of this pass.
cdef void ack_schedule(Library library, MxPartner *partner, bint at_once) noexcept nogil
# The end of a pass: the immediate ones, then the delayed ones that are due.
cdef void ack_flush(Library library) noexcept nogil
# All that are owed, whether due or not: before closing.
cdef void ack_flush_all(Library library) noexcept nogil


cdef inline void ack_owe(Library library, MxPartner *partner, bint at_once) noexcept nogil:
    """next_frag moved, or a duplicate came (`at_once`: our last acknowledgement was lost)."""
    if partner.ack_state != ACK_NOW and partner.known:
        ack_schedule(library, partner, at_once)


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


# -- Connecting: requests, replies, and the nacks that refuse them.

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
