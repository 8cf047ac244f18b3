"""Links that are rings in shared memory: each node's segment has one for each sending node."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport Ingress
from shrimpmx.link.line cimport EmulatedLine
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.ring cimport ring
from shrimpmx.shared.layout cimport node_header


cdef struct ring_destination:
    ring *frames                 # incoming link ring of the destination; NULL: no such node
    wait_slot *doorbell          # of the destination's NIC
    uint32_t runner              # whose doorbell that is
    node_header *node
    const uint64_t *dropped      # the counters of the destination's NIC
    bint unpublished


@cython.final
cdef class RingEgress(EmulatedLine):
    cdef list nodes              # keeps the destinations mapped
    cdef ring_destination *destinations
    cdef uint32_t destinations_count
    cdef uint32_t room           # for destinations
    cdef uint32_t *unpublished   # destinations with frames that are not published
    cdef uint32_t unpublished_count


cdef struct incoming_link:
    ring *frames
    uint32_t taken           # slots read, not yet handed back
    uint32_t finished        # the first of them, which may be handed back
    uint32_t available       # slots known to be readable, taken ones included
    int64_t arrival_ns       # of the next frame; NEVER_NS: none known


@cython.final
cdef class RingIngress(Ingress):
    cdef object node                 # keeps the rings mapped
    cdef incoming_link *links        # one for each sending node
    cdef uint32_t links_count
    cdef incoming_link *earliest     # where the earliest frame is

    cdef void find_earliest(self) noexcept nogil
