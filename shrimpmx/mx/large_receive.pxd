"""Large messages, the receiver's side: pulling, and telling the sender."""

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxPartner, MxRequest, RequestStatus
from shrimpmx.shared.layout cimport event

# A receive has matched a large message, whose rndv is in its fields: pulls it now or later.
cdef void large_receive(Library library, MxRequest *receive) noexcept nogil
# The same of one that was kept; `kept` is gone.
cdef void large_adopt(Library library, MxRequest *receive, MxRequest *kept) noexcept nogil
# Receives that found no region, memory, pull handle or room in the tx ring.
cdef void large_admit_receives(Library library) noexcept nogil
cdef void large_retry_receives(Library library) noexcept nogil
# An event that says that a pull has ended.
cdef void large_pull_done(Library library, const event *incoming) noexcept nogil
# Messages of a partner whose conversation is over: receives end with `status`.
cdef void large_receives_drop(Library library, MxPartner *partner,
                              RequestStatus status) noexcept nogil
