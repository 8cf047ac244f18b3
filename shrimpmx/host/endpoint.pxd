"""The driver as a rank sees it: event rings, receive queue, send commands."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.host.event_ring cimport event_reader
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

    # Events: the next one or NULL; consume what next_* returned, after its data is used.
    cdef event *next_unexpected(self) noexcept nogil
    cdef void consume_unexpected(self) noexcept nogil
    cdef event *next_expected(self) noexcept nogil
    cdef void consume_expected(self) noexcept nogil
    cdef bint has_event(self) noexcept nogil
    # The data of a small or medium event: its recvq_offset.
    cdef const uint8_t *recvq(self, uint32_t offset) noexcept nogil

    # Send commands: 1, or 0 if the tx ring is full (counted send_no_tx_slot). Then doorbell().
    cdef int send_connect(self, uint32_t peer, uint32_t dst_endpoint, uint32_t lib_seqnum,
                          const event_connect *data, bint is_reply) noexcept nogil
    cdef int send_tiny(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                       uint32_t seqnum, uint32_t piggyack, uint64_t match,
                       const void *data, uint32_t length) noexcept nogil
    cdef int send_small(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                        uint32_t seqnum, uint32_t piggyack, uint64_t match,
                        const void *data, uint32_t length) noexcept nogil
    cdef int send_medium_frag(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                              uint32_t seqnum, uint32_t piggyack, uint64_t match,
                              uint32_t message_length, uint32_t frag_seqnum,
                              const void *data, uint32_t frag_length,
                              bint is_last) noexcept nogil
    cdef int send_liback(self, uint32_t peer, uint32_t dst_endpoint, uint32_t session,
                         uint32_t lib_seqnum, uint32_t session_id, uint32_t acknum,
                         uint32_t send_seq, uint32_t resent) noexcept nogil
    cdef void doorbell(self) noexcept nogil

    cdef int _open(self, uint32_t session, uint32_t start) noexcept nogil
    cdef void _open_readers(self, uint32_t start) noexcept nogil
    cdef uint8_t *_prepare(self, uint32_t peer) noexcept nogil
    cdef int _send_message(self, uint8_t ptype, uint32_t peer, uint32_t dst_endpoint,
                           uint32_t session, uint32_t seqnum, uint32_t piggyack, uint64_t match,
                           const void *data, uint32_t length) noexcept nogil
