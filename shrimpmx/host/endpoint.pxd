"""The driver as a rank sees it: event rings, receive queue, send commands."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.host.event_ring cimport event_reader
from shrimpmx.host.local_events cimport LocalPort
from shrimpmx.host.send_commands cimport packet_route
from shrimpmx.host.transmit cimport TransmitPort
from shrimpmx.shared.layout cimport COUNTERS_MAX, endpoint_descriptor, event, event_connect
from shrimpmx.shared.node cimport Node


cdef class DriverEndpoint:
    cdef readonly Node node
    cdef readonly uint32_t index
    cdef readonly uint32_t runner
    cdef endpoint_descriptor *descriptor
    cdef TransmitPort port           # set port.now_ns to stamp the frames of a batch
    cdef uint64_t *counters          # the rank's (COUNTER_send_*), or own_counters
    cdef uint64_t[COUNTERS_MAX] own_counters
    cdef event_reader unexpected
    cdef event_reader expected
    cdef uint8_t *recvq_start
    cdef bint frames_waiting         # committed since the last doorbell
    cdef LocalPort local             # the way to the other ranks of the node
    cdef public bint shared          # messages to ranks of the own node go by shared memory

    # Events: the next one or NULL; consume what next_* returned, after its data is used.
    cdef event *next_unexpected(self) noexcept nogil
    cdef void consume_unexpected(self) noexcept nogil
    cdef event *next_expected(self) noexcept nogil
    cdef void consume_expected(self) noexcept nogil
    cdef bint has_event(self) noexcept nogil
    # The data of a small or medium event: its recvq_offset.
    cdef const uint8_t *recvq(self, uint32_t offset) noexcept nogil

    # Whether messages to `peer` go by shared memory.
    cdef bint sends_locally(self, uint32_t peer) noexcept nogil

    # Send commands: 1 sent; 0 no room, try again later: the tx ring is full (counted
    # send_no_tx_slot), or the event ring of a local target (counted shared_eventq_full); -n, n
    # an enum wire_nack: the local target refused. Then doorbell().
    cdef int send_connect(self, uint32_t peer, uint32_t dst_endpoint, uint32_t lib_seqnum,
                          const event_connect *data, bint is_reply) noexcept nogil
    cdef int send_tiny(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                       uint32_t seqnum, uint32_t piggyack, uint64_t match,
                       const void *data, uint32_t length) noexcept nogil
    cdef int send_small(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                        uint32_t seqnum, uint32_t piggyack, uint64_t match,
                        const void *data, uint32_t length) noexcept nogil
    # `from_copy`: the data lies in the library's own copy, not in the user's buffer.
    cdef int send_medium_frag(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                              uint32_t seqnum, uint32_t piggyack, uint64_t match,
                              uint32_t message_length, uint32_t frag_seqnum,
                              const void *data, uint32_t frag_length,
                              bint from_copy) noexcept nogil
    cdef int send_rndv(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                       uint32_t seqnum, uint32_t piggyack, uint64_t match,
                       uint32_t message_length, uint8_t rdma_id, uint8_t rdma_seqnum,
                       uint16_t rdma_offset) noexcept nogil
    cdef int send_notify(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                         uint32_t seqnum, uint32_t piggyack, uint32_t transferred,
                         uint8_t rdma_id, uint8_t rdma_seqnum) noexcept nogil
    cdef int send_liback(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                         uint32_t lib_seqnum, uint32_t session_id, uint32_t acknum,
                         uint32_t send_seq, uint32_t resent) noexcept nogil
    # The NIC is told of the frames since the last doorbell; nothing if there are none.
    cdef void doorbell(self) noexcept nogil

    cdef int _open(self, uint32_t session, uint32_t start, uint32_t pid) noexcept nogil
    cdef void _open_readers(self, uint32_t start) noexcept nogil
    cdef packet_route _route(self, uint32_t dst_endpoint, uint32_t session) noexcept nogil
    cdef uint8_t *_prepare(self, uint32_t peer) noexcept nogil
    cdef int _commit(self, uint32_t bytes_count, uint32_t counter) noexcept nogil
    cdef int _send_message(self, uint8_t ptype, uint32_t peer, uint32_t dst_endpoint,
                           uint32_t session, uint32_t seqnum, uint32_t piggyack, uint64_t match,
                           const void *data, uint32_t length, uint32_t counter) noexcept nogil
