"""What the library keeps: requests, partners and the lists they stand in.

Lists are circular and doubly linked through a `ListLink` inside the struct, so that
joining and leaving one allocates nothing. A link that is in no list points to
itself; taking it out again is harmless.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    # A sequence number: 14 bits that count, 2 bits of session counter (Open-MX).
    SEQNUM_MASK = 0x3FFF
    SEQNUM_SESSION_MASK = 0xC000
    SEQNUM_SESSION_STEP = 0x4000
    SEQNUM_FIRST = 1
    SEQNUM_HALF = 0x2000
    # Tiny and small data lies inside the request: no buffer to find, one line fewer to touch.
    INLINE_BYTES = 128
    CACHE_LINE_BYTES = 64
    REQUEST_UNUSED_BYTES = 32  # fills the last line of an MxRequest
    # Regions that large sends may have at once: half of an endpoint's, so that there are always
    # some for receives, which end by themselves (Open-MX).
    LARGE_SENDS_MAX = 128
    # The longest message; a receive's buffer beyond that stays unused (ours).
    MESSAGE_MAX_BYTES = 0x7FFFFFFF
    # Fragments of a medium message that MxRequest.fragments has bits for.
    FRAGMENTS_MAX = 64

cdef enum RequestKind:
    REQUEST_SEND
    REQUEST_RECEIVE
    REQUEST_CONNECT
    REQUEST_KEPT             # an unexpected or early message; no call of the user's made it
    REQUEST_NOTIFY           # tells a large message's sender that it was received

cdef enum RequestFlag:
    REQUEST_DONE = 1         # complete: `status` holds
    REQUEST_RELEASED = 2     # the user will not look at it again
    REQUEST_IN_FLIGHT = 4    # a send that is not acknowledged yet
    REQUEST_ZOMBIE = 8       # ... and was completed before that, its data retained
    REQUEST_IN_ARENA = 16    # `data` came from an arena
    REQUEST_PARTIAL = 32     # a medium message some of whose fragments are still to come
    REQUEST_POSTED = 64      # in the list of posted receives
    REQUEST_POSTING = 128    # waits for its turn to send: throttled, or tx ring full
    REQUEST_LARGE = 256      # its data does not come with it but is pulled
    REQUEST_ACKED = 512      # a large send that awaits its notify, in MxPartner.large
    REQUEST_PULLING = 1024   # a large receive that counts in large_receive.running
    REQUEST_FORGOTTEN = 65536  # never tested: it goes to request.forgotten when done
    REQUEST_BOUND = 131072   # a Python Request owns it: it goes to request.completed when done
    REQUEST_TAKEN = 262144   # a kept message that a call has taken, and will give back
    REQUEST_UNEXPECTED = 536870912  # a message that waits for a receive
    REQUEST_HASHED = 268435456  # in the hash of its side (match_table)
    REQUEST_UNHASHED = 1073741824  # waits under a mask that is not hashed (match_table)

cdef enum RequestStatus:
    STATUS_SUCCESS
    STATUS_TRUNCATED
    STATUS_CANCELLED
    STATUS_UNREACHABLE
    STATUS_BAD_ENDPOINT
    STATUS_CLOSED
    STATUS_BAD_SESSION
    STATUS_BAD_KEY
    STATUS_BAD_RDMA_WINDOW
    STATUS_ABORTED
    STATUS_NO_RESOURCES
    STATUS_BAD_BUFFER

cdef enum AckState:
    ACK_NONE                 # nothing to acknowledge
    ACK_LATER                # in the list of delayed acknowledgements
    ACK_NOW                  # in the list to send at the end of this pass


cdef struct ListLink:
    ListLink *next
    ListLink *previous


cdef struct Reach:           # how handlers reach a buffer (library.pyx)
    int kind                 # REGION_HEAP or REGION_PROCESS of host/regions.h
    bint bounced             # `start` is a block of the heap; the data is copied
    uint8_t *start           # what to register


cdef struct MxPartner:       # one remote endpoint
    ListLink acks            # in Library.ack.now or ack.later
    ListLink refusals        # in Library.partner.refused
    ListLink waiting         # in Library.large.waiting_partners: its first send needs memory
    uint32_t peer_index
    uint32_t endpoint
    uint32_t true_session    # goes with messages; valid if can_send
    uint32_t back_session    # goes with acknowledgements; valid if known
    uint32_t previous_session  # of the instance before its restart
    bint can_send
    bint known
    bint restarted
    AckState ack_state
    int64_t ack_due_ns
    int64_t known_ns         # when back_session was learned
    int64_t heard_ns         # when it last showed that it has this conversation
    # Send side: [next_acked, next_send) are in flight.
    uint32_t unacked_events  # events that they make in its ring
    uint16_t next_send
    uint16_t next_acked
    # Receive side: below next_frag all is received, below next_match all is matched.
    uint16_t next_match
    uint16_t next_frag
    uint16_t last_acked      # next_frag as we last told it
    uint8_t connect_seqnum   # of our last connect request
    uint8_t connect_seen     # of its last connect request
    # A rank of this node.
    bint local               # messages to it go by shared memory
    bint is_self             # this very endpoint: messages are copied by the library
    bint ring_full           # its event ring was, in this walk through the starved
    uint8_t refused          # enum wire_nack by which it refused, to be told at the pass's end
    uint8_t connect_heard    # 1: connect_seen is the number of a request that came
    uint32_t refused_session  # the session it refused
    uint32_t acknum_sent
    uint32_t acknum_received
    ListLink unacked         # sends in flight, by seqnum (chain)
    ListLink throttled       # sends without a seqnum yet (queue)
    ListLink connects        # connect requests, oldest first (chain)
    ListLink early           # kept messages that came too early, by seqnum (chain)
    ListLink partial         # matched or kept, fragments missing, by seqnum (chain)
    ListLink large           # large sends that await their notify, oldest first (chain)
    ListLink incoming        # kept or matched messages whose data is still the sender's (chain)
    void *owner              # the Python Partner, borrowed
    MxPartner *made_before   # another one of the table; NULL: none


cdef struct MxRequest:       # cache lines; what every message needs lies in the first two
    ListLink queue           # the one queue that it waits in (see Library), or the pool's
    ListLink chain           # one of its partner's lists
    ListLink ending          # Library.request.completed or forgotten: done, not released yet
    MxPartner *partner
    uint8_t *data            # the user's buffer, inline_data or arena space
    uint64_t match
    uint64_t mask
    uint32_t length          # of the message
    uint32_t capacity        # receives: bytes that fit into data
    uint32_t received        # bytes of the message that have come
    uint32_t fragments_sent
    uint16_t seqnum
    uint8_t kind             # RequestKind
    uint8_t status           # RequestStatus
    uint32_t flags           # RequestFlag
    uint32_t resends
    uint32_t resends_max     # its own limit; 0: the library's
    int region               # large: id of the memory region that it has; -1: none
    uint8_t rdma_id          # large sends: of their own region; else the sender's
    uint8_t rdma_seqnum      # ... and which use of that id
    uint16_t rdma_offset
    uint64_t fragments       # received ones, a bit each
    int64_t sent_ns          # when it last went out; NEVER_NS until a pass has looked at the clock
    # Zero, NULL and false in the pool: the code that sets them resets them.
    Reach reach
    uint64_t cookie          # of its pull
    MxRequest *notify        # what to send when it is pulled
    void *owner              # the Python Request, which is kept alive until it is collected
    MxRequest *sender        # kept, sent to ourselves: the send that still has the data
    uint8_t inline_data[INLINE_BYTES]
    # Of what is hashed (match_table).
    ListLink bucket          # the group's head: in its bucket
    ListLink same            # the ring of its group
    uint64_t number          # its age
    uint8_t unused[REQUEST_UNUSED_BYTES]


# -- lists -----------------------------------------------------------------

cdef inline void list_clear(ListLink *link) noexcept nogil:
    link.next = link
    link.previous = link


cdef inline bint list_empty(const ListLink *listed) noexcept nogil:
    return listed.next == listed


cdef inline void list_insert_after(ListLink *place, ListLink *link) noexcept nogil:
    link.next = place.next
    link.previous = place
    place.next.previous = link
    place.next = link


cdef inline void list_append(ListLink *listed, ListLink *link) noexcept nogil:
    list_insert_after(listed.previous, link)


cdef inline void list_remove(ListLink *link) noexcept nogil:
    link.previous.next = link.next
    link.next.previous = link.previous
    list_clear(link)


cdef inline MxRequest *request_of_queue(ListLink *link) noexcept nogil:
    return <MxRequest *>link


cdef inline MxRequest *request_of_chain(ListLink *link) noexcept nogil:
    return <MxRequest *>(link - 1)  # `chain` is the second link of the struct


cdef inline MxRequest *request_of_ending(ListLink *link) noexcept nogil:
    return <MxRequest *>(link - 2)  # `ending` is the third link of the struct


cdef inline MxPartner *partner_of_refusals(ListLink *link) noexcept nogil:
    return <MxPartner *>(link - 1)  # `refusals` is the second link of the struct


cdef inline MxPartner *partner_of_waiting(ListLink *link) noexcept nogil:
    return <MxPartner *>(link - 2)  # `waiting` is the third link of the struct


cdef inline MxPartner *partner_of_acks(ListLink *link) noexcept nogil:
    return <MxPartner *>link


# -- sequence numbers --------------------------------------------------------

cdef inline uint16_t seqnum_next(uint16_t seqnum) noexcept nogil:
    return (seqnum & SEQNUM_SESSION_MASK) | ((seqnum + 1) & SEQNUM_MASK)


cdef inline uint16_t seqnum_distance(uint16_t later, uint16_t earlier) noexcept nogil:
    """Steps from `earlier` forward to `later`, within 14 bits."""
    return (later - earlier) & SEQNUM_MASK


cdef inline bint seqnum_same_session(uint16_t one, uint16_t other) noexcept nogil:
    return ((one ^ other) & SEQNUM_SESSION_MASK) == 0
