"""The state of one open endpoint, and what every part of the library does to it."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from shrimpmx.host.busy_poll cimport BusyPoll
from shrimpmx.host.endpoint cimport DriverEndpoint
from shrimpmx.mx.match_table cimport Matching
from shrimpmx.mx.pool cimport Arena, RequestPool, arena_give, pool_give
from shrimpmx.mx.types cimport (
    REQUEST_BOUND, REQUEST_DONE, REQUEST_FORGOTTEN, REQUEST_IN_ARENA, REQUEST_IN_FLIGHT,
    REQUEST_POSTING, REQUEST_RELEASED, REQUEST_ZOMBIE, ListLink, MxPartner, MxRequest,
    RequestStatus, list_append, list_remove,
)
from shrimpmx.native.clock cimport Clock, clock_now_ns
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.trace cimport message_word, trace_record, trace_ring
from shrimpmx.shared.heap cimport Heap
from shrimpmx.shared.node cimport Node


cdef class Library:
    cdef DriverEndpoint driver
    cdef BusyPoll busy_poll          # how it polls the rx ring itself; None: it does not
    cdef readonly Node node
    cdef const Clock *clock
    cdef uint64_t *counters          # the driver's, in which it counts as well
    cdef trace_ring *trace           # the rank's; NULL: tracing is off
    cdef object tracing              # the Trace that the ring belongs to
    cdef RequestPool pool
    cdef Arena receive_arena         # unexpected and early messages
    cdef Arena send_arena            # medium messages completed before they are acked
    cdef Heap heap                   # of this process; None: the node has none (memory.pyx)
    cdef bint heap_direct            # handlers write into a buffer that lies in it
    cdef bint process_memory         # ... and into any other by process_vm_writev
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
    cdef int64_t event_cost_ns       # added to what an event takes
    cdef int64_t ack_delay_ns
    cdef int64_t resend_delay_ns
    cdef uint32_t notacked_max
    cdef uint32_t resends_max
    cdef uint32_t zombies_max
    cdef uint32_t throttle
    cdef uint32_t early_window
    cdef uint32_t eager_max          # the longest message that is sent eagerly
    cdef uint32_t shared_eager_max   # ... to a rank of this node
    cdef uint32_t medium_max         # the longest that fragments can carry
    # Now.
    cdef int64_t now_ns              # read once per pass
    cdef bint in_pass
    cdef uint32_t zombies
    cdef Matching matching           # posted receives and unexpected messages (queue)
    cdef ListLink resend             # sent, awaiting an answer; least recently sent first (queue)
    cdef ListLink starved            # found the tx ring full, oldest first (queue)
    cdef ListLink refused            # partners that refused a message (refusals)
    cdef bint tx_full                # a starved request waits for the tx ring, not for a local one
    cdef bint self_path              # messages to this endpoint itself are copied here
    cdef ListLink waiting_partners   # their first large send waits for memory (waiting)
    cdef ListLink delayed            # large receives that could not be pulled yet (queue)
    cdef ListLink unnotified         # large sends acked, not notified; longest unheard first
    cdef bint pull_found_no_room     # a delayed one waits for the tx ring
    cdef MxRequest **region_owners   # [region id]; NULL: free
    cdef uint32_t regions_used
    cdef uint32_t large_sends        # ... of which these are of sends
    cdef uint64_t bounced_bytes      # of sends, that lie in bounce buffers
    cdef uint64_t pulls              # started so far
    cdef ListLink ack_now            # partners to acknowledge at the end of this pass
    cdef ListLink ack_later          # partners to acknowledge when due, soonest first
    cdef ListLink completed          # bound, done and not released yet, in that order (ending)
    cdef ListLink forgotten          # the same of requests that nobody will test (ending)
    # Threads of the process that share the endpoint (see lock.pxd).
    cdef uint32_t lock_word          # 1: a thread is in a call
    cdef wait_slot *slot             # of the process; NULL: its threads spin
    cdef uint32_t waiting            # threads that wait without the lock
    cdef uint32_t event_index        # bumped for them when something was done that is no event
    cdef uint64_t completions        # requests done so far
    cdef uint64_t told               # what had happened when event_index was last bumped
    cdef int64_t waiting_until_ns    # when the first of them wants a pass
    cdef uint32_t wakeups            # calls of Endpoint.wakeup
    cdef object unexpected_handler   # Python callable, or None
    cdef bint handles_unexpected     # there is one
    cdef bint progression_disabled   # Python calls make no passes
    cdef uint32_t resends_default    # resends_max as configured
    cdef uint64_t handler_thread     # the thread that is inside it; 0: none
    cdef MxPartner **partners        # [peer_index * 256 + endpoint]; NULL: never heard of

    cdef int open(self, object session_id) except -1
    cdef int prepare_memory(self, str way) except -1
    cdef dict counter_values(self)
    cdef void close(self) noexcept
    cdef void clear_lists(self) noexcept
    cdef int choose_size_classes(self, parameters) except -1

# Those of this process.
cdef list open_libraries()


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
    library.driver.stamp(time_ns)
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
    library.completions += 1
    if request.flags & REQUEST_FORGOTTEN:
        list_append(&library.forgotten, &request.ending)
    elif request.flags & REQUEST_BOUND:
        list_append(&library.completed, &request.ending)


cdef inline void request_release(Library library, MxRequest *request) noexcept nogil:
    """The user is through with a completed request; a zombie lives on until it is acked."""
    if request.flags & (REQUEST_BOUND | REQUEST_FORGOTTEN):
        list_remove(&request.ending)
    if request.flags & REQUEST_IN_FLIGHT:
        request.flags |= REQUEST_RELEASED
    else:
        pool_give(&library.pool, request)


cdef inline void request_end_send(Library library, MxRequest *request,
                                  RequestStatus status) noexcept nogil:
    """A send is acknowledged, or given up: it leaves its queues and gives its data back."""
    list_remove(&request.queue)
    list_remove(&request.chain)
    if request.flags & REQUEST_ZOMBIE:
        library.zombies -= 1
    request_give_data(library, request)
    request.flags &= ~(<uint32_t>(REQUEST_IN_FLIGHT | REQUEST_ZOMBIE | REQUEST_POSTING))
    if not request.flags & REQUEST_DONE:
        request_complete(library, request, status)
    elif request.flags & REQUEST_RELEASED:
        pool_give(&library.pool, request)
