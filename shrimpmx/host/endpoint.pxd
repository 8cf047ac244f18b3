"""The driver as a rank sees it: event rings, receive queue, send commands; the shared path.

The library reads the fields of a DriverEndpoint and calls its methods; host/ alone writes them.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.host.send_commands cimport Envelope, packet_source
from shrimpmx.native.copy cimport COPY_LENGTHS, copy_costs
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.ring cimport ring, ring_free, ring_publish
from shrimpmx.shared.layout cimport (
    COUNTERS_MAX, control_header, endpoint_descriptor, event, event_connect, frame_slot,
    node_header,
)
from shrimpmx.shared.node cimport Node

# -- The driver's send side: frames into a tx ring, then the NIC's doorbell.

# One producer's way to its NIC. Only the ring's one producer may use it.
cdef struct TransmitPort:
    node_header *node
    ring *tx
    wait_slot *doorbell      # of the NIC's process
    frame_slot *slot         # being filled, between prepare and commit
    int64_t now_ns           # what committed frames carry as their hand-over time
    uint8_t head[16]         # of every frame but for the destination's last two bytes

# Binds `port` to a tx ring of `node`: node_core_tx_ring() or node_endpoint_tx_ring().
cdef void transmit_open(TransmitPort *port, Node node, ring *tx) noexcept
# The start of a frame with its 16-byte head filled, or NULL when the ring is full.
cdef uint8_t *transmit_prepare(TransmitPort *port, uint32_t peer_index) noexcept nogil
# The prepared frame has `length` bytes; pads it to 60. Not yet visible to the NIC.
cdef void transmit_commit(TransmitPort *port, uint32_t length) noexcept nogil
# All committed frames become visible and the NIC is woken if it sleeps; once per batch.
cdef void transmit_doorbell(TransmitPort *port) noexcept nogil


# -- Event rings between the driver and a rank; see event_ring.h.

cdef extern from "host/event_ring.h" nogil:
    cdef struct event_writer:
        event *events
        uint8_t *recvq
        uint32_t entries, kind, slot_bytes
        uint32_t next
        uint32_t released_seen
        uint8_t id
    cdef struct event_reader:
        event *events
        uint32_t entries, kind
        uint32_t index
        uint32_t released
        uint8_t id
    void event_ring_reset(event *events, uint32_t entries, uint32_t start) noexcept
    void event_writer_open(event_writer *writer, event *events, uint8_t *recvq,
                           uint32_t *next_shared, uint32_t *released_shared, uint32_t entries,
                           uint32_t kind, uint32_t slot_bytes) noexcept
    void event_writer_open_unexpected(event_writer *writer, node_header *node,
                                      endpoint_descriptor *endpoint) noexcept
    void event_writer_open_expected(event_writer *writer, node_header *node,
                                    endpoint_descriptor *endpoint) noexcept
    void event_writer_repair(event_writer *writer) noexcept
    bint endpoint_lock_take(node_header *node, endpoint_descriptor *endpoint) noexcept
    bint endpoint_lock_try(node_header *node, endpoint_descriptor *endpoint) noexcept
    event *event_writer_prepare(event_writer *writer) noexcept
    uint32_t event_writer_recvq_offset(const event_writer *writer) noexcept
    void event_writer_commit(event_writer *writer, event *e, uint8_t type) noexcept
    void event_writer_prefetch(const event_writer *writer, bint with_data) noexcept
    void event_reader_open(event_reader *reader, event *events, uint32_t *released_shared,
                           uint32_t entries, uint32_t kind, uint32_t start) noexcept
    event *event_reader_peek(const event_reader *reader) noexcept
    void event_reader_consume(event_reader *reader) noexcept

# The fields of an event by name, for Python.
cdef dict event_fields(const event *e, const uint8_t *recvq)


# -- Events straight into the rings of the other ranks of the node.

# One rank's way to the other ranks of its node.
cdef struct LocalPort:
    node_header *node
    control_header *control
    uint32_t taken       # events that the rank had taken before its last packet
    bint goes_on         # it has taken none since: more packets are likely to follow

# Binds `port` to the ranks of `node`.
cdef void local_open(LocalPort *port, Node node) noexcept
# Posts the event of a packet to its target, an endpoint of this node. `header`: as
# send_commands.pxd writes it; `session`: the packet's, in host byte order, not looked at in a
# connect; `data`: a medium fragment's; `counters`: the sending rank's. Returns 1; 0 if the
# target's ring is full; -n, n an enum wire_nack, if the target refuses.
cdef int local_post(const LocalPort *port, uint64_t *counters, const uint8_t *header,
                    uint32_t session, const uint8_t *data) noexcept nogil
# Takes the lock of an open endpoint and repairs what a dead holder left; 0, or -n as local_post().
cdef int local_enter(node_header *node, uint32_t endpoint) noexcept nogil
# The rank that sleeps in process `runner` looks at its rings again.
cdef void local_wake(control_header *control, uint64_t *counters, uint32_t runner) noexcept nogil


cdef class DriverEndpoint:
    cdef readonly Node node
    cdef readonly uint32_t index
    cdef readonly uint32_t runner
    cdef endpoint_descriptor *descriptor
    cdef packet_source source        # of its packets
    cdef TransmitPort port
    cdef uint64_t *counters          # the rank's record, or own_counters
    cdef uint64_t[COUNTERS_MAX] own_counters
    cdef event_reader unexpected
    cdef event_reader expected
    cdef uint8_t *recvq_start
    cdef bint frames_waiting         # committed since the last doorbell
    cdef copy_costs[COPY_LENGTHS] copy_costs
    cdef LocalPort local             # the way to the other ranks of the node
    cdef public bint shared          # messages to ranks of the own node go by shared memory

    # Events: the next one or NULL; consume what next_* returned, after its data is used.
    cdef inline event *next_unexpected(self) noexcept nogil:
        return event_reader_peek(&self.unexpected)

    cdef inline void consume_unexpected(self) noexcept nogil:
        event_reader_consume(&self.unexpected)
        if self.descriptor.reuses_slots:
            self.descriptor.recvq_read = self.unexpected.index

    cdef inline event *next_expected(self) noexcept nogil:
        return event_reader_peek(&self.expected)

    cdef inline void consume_expected(self) noexcept nogil:
        event_reader_consume(&self.expected)

    cdef inline bint has_event(self) noexcept nogil:
        return self.next_unexpected() != NULL or self.next_expected() != NULL

    cdef inline uint32_t events_taken(self) noexcept nogil:
        return self.unexpected.index + self.expected.index

    # The data of a small or medium event: its recvq_offset.
    cdef inline const uint8_t *recvq(self, uint32_t offset) noexcept nogil:
        return self.recvq_start + offset

    # Frames that are sent from now on carry this time, at which the NIC gets them.
    cdef inline void stamp(self, int64_t now_ns) noexcept nogil:
        self.port.now_ns = now_ns

    # Whether the tx ring takes another frame.
    cdef inline bint has_tx_slot(self) noexcept nogil:
        return ring_free(self.port.tx, 1) > 0

    # A NIC at work sees the frames since the last doorbell; one that sleeps waits for the next.
    cdef inline void publish(self) noexcept nogil:
        ring_publish(self.port.tx)

    # The NIC is told of the frames since the last doorbell; nothing if there are none.
    cdef inline void doorbell(self) noexcept nogil:
        if self.frames_waiting:
            self.frames_waiting = False
            transmit_doorbell(&self.port)

    # Whether messages to `peer` go by shared memory.
    cdef inline bint sends_locally(self, uint32_t peer) noexcept nogil:
        return self.shared and peer == self.node.header.index

    # Send commands: 1 sent; 0 no room, try again later: the tx ring is full (counted
    # send_no_tx_slot), or the event ring of a local target (counted shared_eventq_full); -n, n
    # an enum wire_nack: the local target refused. Then doorbell().
    # `ptype`: PTYPE_TINY or PTYPE_SMALL.
    cdef int send_message(self, uint8_t ptype, const Envelope *envelope, const void *data,
                          uint32_t length) noexcept nogil
    # `from_copy`: the data lies in the library's own copy, not in the user's buffer.
    cdef int send_medium_frag(self, const Envelope *envelope, uint32_t message_length,
                              uint32_t frag_seqnum, const void *data, uint32_t frag_length,
                              bint from_copy) noexcept nogil
    cdef int send_rndv(self, const Envelope *envelope, uint32_t message_length, uint8_t rdma_id,
                       uint8_t rdma_seqnum, uint16_t rdma_offset) noexcept nogil
    cdef int send_notify(self, const Envelope *envelope, uint32_t transferred, uint8_t rdma_id,
                         uint8_t rdma_seqnum) noexcept nogil
    cdef int send_liback(self, const Envelope *envelope, uint32_t session_id, uint32_t acknum,
                         uint16_t send_seq, uint8_t resent) noexcept nogil
    cdef int send_connect(self, const Envelope *envelope, const event_connect *data,
                          bint is_reply) noexcept nogil

    cdef int _open(self, uint32_t session, uint32_t start, uint32_t pid) noexcept nogil
    cdef void _open_readers(self, uint32_t start) noexcept nogil
