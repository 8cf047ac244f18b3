"""Acknowledgements: taking them in, and giving them piggybacked, delayed or at once."""

from libc.stdint cimport uint16_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport ACK_NOW, MxPartner
from shrimpmx.shared.layout cimport event

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
