"""A sender that acts as the NICs for its own short updates, and the lock by which it does so."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport Egress
from shrimpmx.native.ring cimport ring
from shrimpmx.native.trace cimport Capture, capture_ring, trace_ring
from shrimpmx.nic.updates cimport Updates, update_request
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport vmmc_import, vmmc_node

# -- The lock of the process that acts as the NICs, where senders lend them their CPU.

cdef class Lending:
    cdef list nodes              # keeps them mapped
    cdef Control control
    cdef vmmc_node **shared      # of each node
    cdef node_header **headers   # the same
    cdef uint32_t count

    cdef void take(self) noexcept nogil
    cdef bint attempt(self) noexcept nogil   # the same without waiting; False: it is taken
    cdef void give(self) noexcept nogil
    cdef void repair(self) noexcept nogil


cdef enum:
    # A flight that the sender waits for; with a longer one it may do something else (ours).
    LENT_FLIGHT_MAX_NS = 10_000
    # How long a sender waits for another that acts (ours: waking a handler takes up to 20 us).
    LENT_PATIENCE_NS = 30_000
    # The longest update, also where the link takes no time: others wait for the lock (ours).
    LENT_BYTES_MAX = 65536


@cython.final
cdef class LentNic:
    cdef readonly Node node          # the sender's
    cdef list updates                # Updates of each node
    cdef void **updates_of           # the same
    cdef Lending lending
    cdef Egress egress               # of the sender's node; it is only asked
    cdef node_header *header
    cdef Host host                   # of the sender
    cdef ring *tx                    # the sender's
    cdef uint64_t *counters          # of its NIC's agent
    cdef uint64_t *sent              # the sender's own counters
    cdef trace_ring *trace           # the same agent's; NULL: tracing is off
    cdef object tracing              # the Trace that it belongs to
    cdef capture_ring *capture       # where the NIC keeps what it sends; NULL: capturing is off
    cdef Capture capturing           # which that belongs to
    cdef uint32_t endpoint           # the sender's
    cdef uint8_t *frame              # a packet as it would be on the link, for records
    cdef uint32_t room               # bytes of data in a packet
    cdef int64_t link_delay_ns
    cdef int64_t fixed_ns            # of a flight: link delay and DMA latency
    cdef double link_byte_ns
    cdef double dma_byte_ns

    # Carries out an update; False: not here, the NIC has to.
    cdef bint update(self, const vmmc_import *target, uint64_t offset, const void *data,
                     uint64_t length, bint interrupt) noexcept nogil
    cdef uint64_t frame_bytes(self, uint64_t length) noexcept nogil
    cdef uint64_t packets(self, uint64_t length) noexcept nogil
    cdef uint64_t all_bytes(self, uint64_t length) noexcept nogil
    cdef double line_ns(self, uint64_t length) noexcept nogil
    cdef int64_t flight_ns(self, uint64_t length) noexcept nogil
    cdef bint way_is_free(self, uint32_t node) noexcept nogil
    cdef void carry_out(self, const vmmc_import *target, uint64_t offset, const void *data,
                        uint64_t length, bint interrupt, int64_t sent_ns) noexcept nogil
    cdef void build(self, uint32_t node, const update_request *request) noexcept nogil
    cdef uint32_t record(self, Updates there, const update_request *request, int64_t sent_ns,
                         int64_t passed_ns, int64_t complete_ns) noexcept nogil
