"""The state of one open endpoint, and what every part of the library does to it."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from shrimpmx.host.endpoint cimport DriverEndpoint
from shrimpmx.mx.pool cimport Arena, RequestPool, arena_give, pool_give
from shrimpmx.mx.types cimport (
    REQUEST_DONE, REQUEST_IN_ARENA, REQUEST_IN_FLIGHT, REQUEST_POSTING, REQUEST_RELEASED,
    REQUEST_ZOMBIE, Link, MxPartner, MxRequest, RequestStatus, link_remove,
)
from shrimpmx.native.clock cimport Clock, clock_now_ns
from shrimpmx.native.trace cimport message_word, trace_record, trace_ring
from shrimpmx.shared.layout cimport COUNTERS_MAX
from shrimpmx.shared.node cimport Node


cdef class Library:
    cdef DriverEndpoint driver
    cdef readonly Node node
    cdef const Clock *clock
    cdef uint64_t *counters
    cdef uint64_t[COUNTERS_MAX] own_counters
    cdef trace_ring *trace           # the rank's; NULL: tracing is off
    cdef object tracing              # the Trace that the ring belongs to
    cdef RequestPool pool
    cdef Arena receive_arena         # unexpected and early messages
    cdef Arena send_arena            # medium messages completed before they are acked
    cdef bint opened
    cdef list partner_handles        # the Python Partners
    cdef list abandoned              # buffers of requests that nobody waits for any more
    # Who we are.
    cdef uint32_t nodes_count
    cdef uint32_t session
    cdef uint32_t key
    cdef uint32_t frag_bytes         # data of a medium fragment
    cdef uint16_t first_seqnum       # of the first message from each partner
    # Parameters.
    cdef int64_t ack_delay_ns
    cdef int64_t resend_delay_ns
    cdef uint32_t notacked_max
    cdef uint32_t resends_max
    cdef uint32_t zombies_max
    cdef uint32_t throttle
    cdef uint32_t early_window
    # Now.
    cdef int64_t now_ns              # read once per pass
    cdef bint in_pass
    cdef bint doorbell_wanted        # frames lie in the tx ring that the NIC has not been told of
    cdef uint32_t zombies
    cdef Link posted                 # receives, oldest first (queue)
    cdef Link unexpected             # messages that matched none, oldest first (queue)
    cdef Link resend                 # sent, awaiting an answer; least recently sent first (queue)
    cdef Link starved                # found the tx ring full, oldest first (queue)
    cdef Link ack_now                # partners to acknowledge at the end of this pass
    cdef Link ack_later              # partners to acknowledge when due, soonest first
    cdef MxPartner **partners        # [peer_index * 256 + endpoint]; NULL: never heard of

    cdef int open(self, object session_id) except -1
    cdef dict counter_values(self)
    cdef void close(self) noexcept
    cdef void clear_lists(self) noexcept


cdef inline void count(Library library, uint32_t counter) noexcept nogil:
    library.counters[counter] += 1


cdef inline void trace_message(Library library, uint32_t kind, const MxPartner *partner,
                               uint32_t seqnum, uint64_t b) noexcept nogil:
    """Record what happens to a message; nothing when tracing is off."""
    cdef int64_t time_ns
    if library.trace == NULL:
        return
    # The pass's time is older than the event that it is about. Frames that follow carry this
    # one, so that the NIC does not record taking them before it.
    time_ns = clock_now_ns(library.clock)
    library.driver.port.now_ns = time_ns
    trace_record(library.trace, time_ns, kind,
                 message_word(partner.peer_index, partner.endpoint, seqnum), b)


cdef inline void request_give_data(Library library, MxRequest *request) noexcept nogil:
    """Hands arena space back; which arena depends on the request's direction."""
    if request.flags & REQUEST_IN_ARENA:
        request.flags &= ~(<uint32_t>REQUEST_IN_ARENA)
        if request.flags & REQUEST_IN_FLIGHT:
            arena_give(&library.send_arena, request.data)
        else:
            arena_give(&library.receive_arena, request.data)
        request.data = NULL


cdef inline void request_complete(Library library, MxRequest *request,
                                  RequestStatus status) noexcept nogil:
    """The user's test finds it done. Never called twice for one request."""
    request.status = <unsigned char>status
    request.flags |= REQUEST_DONE


cdef inline void request_release(Library library, MxRequest *request) noexcept nogil:
    """The user is through with a completed request; a zombie lives on until it is acked."""
    if request.flags & REQUEST_IN_FLIGHT:
        request.flags |= REQUEST_RELEASED
    else:
        pool_give(&library.pool, request)


cdef inline void request_end_send(Library library, MxRequest *request,
                                  RequestStatus status) noexcept nogil:
    """A send is acknowledged, or given up: it leaves its queues and gives its data back."""
    link_remove(&request.queue)
    link_remove(&request.chain)
    if request.flags & REQUEST_ZOMBIE:
        library.zombies -= 1
    request_give_data(library, request)
    request.flags &= ~(<uint32_t>(REQUEST_IN_FLIGHT | REQUEST_ZOMBIE | REQUEST_POSTING))
    if not request.flags & REQUEST_DONE:
        request_complete(library, request, status)
    elif request.flags & REQUEST_RELEASED:
        pool_give(&library.pool, request)
