"""Software steering (RPS): a handler hands frames on to other cores; see rps.pyx."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.shared.layout cimport frame_slot, node_header
from shrimpmx.shared.node cimport Node


cdef class PacketSteering:
    cdef Node node
    cdef node_header *header
    cdef uint64_t *counters          # of the irq agent that hands on
    cdef uint32_t core               # its own
    cdef uint32_t cores_count
    cdef uint8_t[64] cores           # that frames go to
    cdef uint64_t handed_to          # cores that have got frames since the last end of a poll

    # False: the frame is to be handled here and now. Else it was handed on, or dropped.
    cdef bint hand_on(self, const frame_slot *slot) noexcept nogil
    # The frames handed on become visible; their cores are interrupted. With the vector's token.
    cdef void end_poll(self) noexcept nogil

    cdef bint _append(self, uint32_t core, const frame_slot *slot) noexcept nogil
