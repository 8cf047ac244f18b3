"""Packets for the host itself, a node's raw queue and table of peer names; see raw.h."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.host.endpoint cimport TransmitPort
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.node cimport Node

cdef extern from "host/raw.h" nogil:
    enum:
        RAW_DATA_MAX_BYTES
    enum:
        RAW_KEPT
        RAW_TOO_LARGE
        RAW_FULL
    cdef struct raw_packet:
        uint16_t length, peer
        uint8_t data[1024]
    cdef struct c_raw_queue "raw_queue":
        uint32_t owner
        uint32_t head
        uint32_t tail
        wait_slot reader
    cdef struct peer_name:
        uint32_t length
        uint8_t name[80]
    c_raw_queue *node_raw_queue "raw_queue"(node_header *node) noexcept
    int raw_put(c_raw_queue *queue, uint32_t peer, const uint8_t *data, uint32_t length) noexcept
    int raw_take(c_raw_queue *queue, uint8_t *data, uint32_t *peer) noexcept
    uint32_t raw_open(c_raw_queue *queue, uint32_t owner, uint32_t before) noexcept
    void raw_close(c_raw_queue *queue, uint32_t owner) noexcept
    void raw_name_peer(node_header *node, uint32_t peer, const uint8_t *name,
                       uint32_t length) noexcept
    uint32_t raw_name_of_peer(node_header *node, uint32_t peer, uint8_t *name) noexcept


cdef class RawEndpoint:
    cdef readonly Node node
    cdef Host host
    cdef TransmitPort port
    cdef uint64_t *counters
    cdef uint32_t owner              # pid while it is open, else 0

    cdef uint8_t *_prepare(self, uint32_t peer) noexcept nogil


# -- Packets for the host itself and not for an endpoint: host query, host reply, raw.

# A receive handler's: acts on a checked packet of `peer` of one of the three types. Commits
# the answer to a query on `port`, without doorbell, and counts it. Returns the counter of
# what became of the packet: COUNTER_recv_* or COUNTER_drop_*.
cdef uint32_t host_packet(TransmitPort *port, uint64_t *counters, const uint8_t *frame, int ptype,
                          uint32_t peer) noexcept nogil
# Writes a query for `peer` behind the head of `frame`; returns the frame's length.
cdef uint32_t host_query_fill(uint8_t *frame, uint32_t peer) noexcept nogil
