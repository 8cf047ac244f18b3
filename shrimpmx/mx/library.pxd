"""The state of one open endpoint, in parts, each written by one module.

The struct of each part names the module that alone writes the part (a test checks it). Other
modules read it, or call that module. library.pyx opens and closes all
of them. The parts are structs that lie in the object: to reach a field takes one load.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from shrimpmx.host.endpoint cimport DriverEndpoint
from shrimpmx.host.rx_poll cimport BusyPoll
from shrimpmx.mx.match_table cimport Matching
from shrimpmx.mx.pool cimport Arena, RequestPool
from shrimpmx.mx.types cimport ListLink, MxPartner, MxRequest, Reach
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.trace cimport message_word, trace_record, trace_ring
from shrimpmx.shared.heap cimport Heap
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.node cimport Node

cdef struct Settings:        # constant while the endpoint is open
    uint32_t nodes_count
    uint32_t frag_bytes      # data of a medium fragment
    uint16_t first_seqnum    # of the first message from each partner
    bint self_path           # messages to this endpoint itself are copied by the library
    bint heap_direct         # handlers write into a buffer that lies in the heap (library.pyx)
    bint process_memory      # ... and into any other by process_vm_writev
    int64_t ack_delay_ns
    int64_t resend_delay_ns
    uint32_t notacked_max
    uint32_t resends_max
    uint32_t zombies_max
    uint32_t throttle
    uint32_t send_window     # events in flight that stop sending
    uint32_t pulls_max
    uint32_t early_window
    uint32_t eager_max       # the longest message that is sent eagerly
    uint32_t shared_eager_max  # ... to a rank of this node
    uint32_t medium_max      # the longest that fragments can carry

cdef struct AckState:        # partner.pyx
    ListLink now             # partners to acknowledge at the end of this pass
    ListLink later           # partners to acknowledge when due, soonest first

cdef struct SendState:       # send.pyx
    ListLink resend          # sent, awaiting an answer; least recently sent first (queue)
    ListLink starved         # found the tx ring full, oldest first (queue)
    bint tx_full             # a starved request waits for the tx ring, not for a local one
    bint starves_locally     # one may wait for a local one
    uint32_t zombies
    uint32_t reused          # buffers of freed sends that it has taken again
    uint32_t fragments       # that it has put into the tx ring
    uint32_t fragments_done  # ... and whose events it has had
    uint32_t resends_max     # of requests without a limit of their own

cdef struct LargeState:      # large.pyx
    ListLink waiting_partners  # their first large send waits for memory (waiting)
    ListLink unnotified      # large sends acked, not notified; longest unheard first
    MxRequest **region_owners  # [region id]; NULL: free
    uint32_t regions_used
    uint32_t sends           # ... of which these are of sends
    uint64_t bounced_bytes   # of sends, that lie in bounce buffers

cdef struct LargeReceiveState:  # large.pyx
    ListLink delayed         # large receives that could not be pulled yet (queue)
    bint found_no_room       # a delayed one waits for the tx ring
    ListLink held_back       # over the network, and `pulls_max` others are not done (queue)
    uint32_t running         # so many are not done
    uint64_t pulls           # started so far

cdef struct PartnerState:    # partner.pyx
    MxPartner ***rows        # [peer_index][endpoint]; NULL: never heard of
    uint16_t *row_sizes      # endpoints that each row has room for
    MxPartner *made          # all in the rows, the last one that was made first
    ListLink refused         # partners that refused a message (refusals)

cdef struct ReceiveState:    # recv.pyx
    uint64_t matches         # of messages received since they were last asked for, or'ed

cdef struct RequestState:    # request.pxd
    ListLink completed       # bound, done and not released yet, in that order (ending)
    ListLink forgotten       # the same of requests that no call will test (ending)
    uint64_t completions     # requests done so far

cdef struct LockState:       # lock.pyx: threads of the process that share the endpoint
    uint32_t word            # 1: a thread is in a call
    wait_slot *slot          # of the process; NULL: its threads spin
    uint32_t waiting         # threads that wait without the lock
    uint32_t event_index     # bumped for them when something was done that is no event
    uint64_t told            # what had happened when event_index was last bumped
    int64_t waiting_until_ns  # when the first of them wants a pass
    uint32_t wakeups         # calls of Endpoint.wakeup


cdef class Library:
    # Bound when the endpoint opens.
    cdef DriverEndpoint driver
    cdef BusyPoll busy_poll          # how it polls the rx ring itself; None: it does not
    cdef readonly Node node
    cdef Heap heap                   # of this process; None: the node has none (library.pyx)
    cdef readonly Host host          # of this process
    cdef uint64_t *counters          # the driver's, in which it counts as well
    cdef trace_ring *trace           # the rank's; NULL: tracing is off
    cdef object tracing              # the Trace that the ring belongs to
    cdef uint32_t session
    cdef uint32_t key
    cdef Settings settings
    # Now (progress.pyx).
    cdef int64_t now_ns              # read once per pass
    cdef bint in_pass
    # Memory and matching: pool.pyx and match_table.pyx write them, on behalf of all.
    cdef RequestPool pool
    cdef Arena receive_arena         # unexpected and early messages
    cdef Arena send_arena            # medium messages completed before they are acked
    cdef Matching matching           # posted receives and unexpected messages (queue)
    # The parts.
    cdef SendState send
    cdef AckState ack
    cdef PartnerState partner
    cdef LargeState large
    cdef LargeReceiveState large_receive
    cdef ReceiveState receive
    cdef RequestState request
    cdef LockState lock
    # The Python face.
    cdef bint opened
    cdef bint progression_disabled   # Python calls make no passes (core.pyx)
    cdef object unexpected_handler   # Python callable, or None (endpoint.pyx)
    cdef uint64_t handler_thread     # the thread that is inside it; 0: none (recv.pyx)
    cdef list partner_handles        # the Python Partners (handles.pyx)
    cdef list abandoned              # buffers of requests that were given up
    cdef list siblings               # the open libraries of its process, with this one

    cdef int open(self, object session_id) except -1
    cdef int prepare_memory(self, str way) except -1
    cdef dict counter_values(self)
    cdef void close(self) noexcept
    cdef void clear_lists(self) noexcept
    cdef int settle(self, parameters) except -1
    cdef int find_siblings(self) except -1


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
    time_ns = library.host.now_c()
    library.driver.stamp(time_ns)
    trace_record(library.trace, time_ns, kind,
                 message_word(partner.peer_index, partner.endpoint, seqnum), b)


# -- How handlers in other processes reach a user's buffer.

cdef enum:
    REACH_LATER = -1         # no room for a bounce buffer now: try again when some is given back
    REACH_NEVER = -2         # it would be larger than half of the heap, or there is no heap

# 0, or one of the above. The reach holds until memory_give. `away`: handlers of other nodes move
# the data, frame by frame.
cdef int memory_reach(Library library, void *data, uint64_t length, bint away,
                      Reach *reach) noexcept nogil
# Takes the data of a send, or of a receive, to or from the bounce buffer. False if the user's
# buffer cannot be read, or written; where the system forbids process_vm_readv that kills the rank.
cdef bint memory_fill(Library library, const Reach *reach, const void *data,
                      uint64_t length) noexcept nogil
cdef bint memory_empty(Library library, const Reach *reach, void *data,
                       uint64_t length) noexcept nogil
cdef void memory_give(Library library, Reach *reach) noexcept nogil
