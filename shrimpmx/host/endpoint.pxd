"""The driver as a rank sees it: event rings, receive queue, send commands.

The library reads the fields of a DriverEndpoint and calls its methods; host/ alone writes them.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.host.event_ring cimport event_reader, event_reader_consume, event_reader_peek
from shrimpmx.host.local_events cimport LocalPort
from shrimpmx.host.send_commands cimport Envelope, packet_source
from shrimpmx.host.transmit cimport TransmitPort, transmit_doorbell
from shrimpmx.native.copy cimport COPY_LENGTHS, copy_costs
from shrimpmx.native.ring cimport ring_free, ring_publish
from shrimpmx.shared.layout cimport COUNTERS_MAX, endpoint_descriptor, event, event_connect
from shrimpmx.shared.node cimport Node


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
