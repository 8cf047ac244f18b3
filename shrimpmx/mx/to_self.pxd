"""Messages of an endpoint to itself: copied by the library, without packets."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.request cimport request_complete
from shrimpmx.mx.types cimport STATUS_SUCCESS, STATUS_TRUNCATED, MxPartner, MxRequest, list_remove

# Sends to the endpoint itself, `partner`; NULL only if memory is out. `synchronous`: done only
# when received. The data of a long or synchronous message stays where it is until then.
cdef MxRequest *send_to_self(Library library, MxPartner *partner, const void *data,
                             uint32_t length, uint64_t match, bint synchronous) noexcept nogil


cdef inline void end_send_to_self(Library library, MxRequest *kept,
                                  uint32_t capacity) noexcept nogil:
    """The kept message was received into `capacity` bytes: if its send still has the data, that
    is done now. Harmless for messages of others."""
    cdef MxRequest *sender = kept.sender
    if sender == NULL:
        return
    kept.sender = NULL
    list_remove(&kept.chain)
    sender.received = min(kept.length, capacity)
    request_complete(library, sender,
                     STATUS_TRUNCATED if kept.length > capacity else STATUS_SUCCESS)
