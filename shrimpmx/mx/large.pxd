"""Large messages: rendezvous and the wait for the notify; the pull, and the notify itself."""

from libc.stdint cimport uint16_t, uint32_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxPartner, MxRequest, RequestStatus
from shrimpmx.shared.layout cimport event

cdef enum LargeReady:
    LARGE_READY              # it may be launched
    LARGE_WAITS              # no region or no memory now; the partner is in waiting_partners
    LARGE_NEVER              # it would need more memory than there can be

# Before a large send gets its number: registers its data for the pull.
cdef LargeReady large_prepare(Library library, MxRequest *request) noexcept nogil
# Puts the rndv packet into the tx ring: 1, 0 or -n as the driver's send commands.
cdef int large_transmit(Library library, MxRequest *request) noexcept nogil
# The receiver has the rndv; its notify is awaited now, if it has not overtaken.
cdef void large_acked(Library library, MxRequest *request) noexcept nogil
# A notify whose turn it is: the data was pulled.
cdef void large_notified(Library library, MxPartner *partner, uint32_t transferred,
                         uint32_t rdma_id, uint32_t rdma_seqnum) noexcept nogil
# An event that says of a send's region that it cannot be read.
cdef void large_unreadable(Library library, const event *incoming) noexcept nogil
# Takes a send back, unless it has ended; its receiver's pull fails. False: it is none of these.
cdef bint large_withdraw(Library library, MxRequest *request) noexcept nogil
# Whether large_keep_alive asks the partner by that number.
cdef bint large_asks(const MxPartner *partner, uint16_t seqnum) noexcept nogil
# Sends that waited for a region or memory, as far as there is some now.
cdef void large_retry_sends(Library library) noexcept nogil
# Asks partners from which nothing was heard for long whether they still have the messages.
cdef void large_keep_alive(Library library) noexcept nogil
# Takes away what handlers could reach: the region, and the bounce buffer.
cdef void large_release(Library library, MxRequest *request) noexcept nogil
# All large messages of a conversation that is over end with `status`.
cdef void large_drop(Library library, MxPartner *partner, RequestStatus status) noexcept nogil
# The endpoint closes: bounce buffers are given back.
cdef void large_forget_all(Library library) noexcept


cdef inline void large_own_region(Library library, MxRequest *request) noexcept nogil:
    """The request has a region from now on, until large_release."""
    library.large.region_owners[request.region] = request
    library.large.regions_used += 1


# -- Large messages, the receiver's side: pulling, and telling the sender.

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
