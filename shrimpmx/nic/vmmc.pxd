"""SHRIMP's NIC: one agent per emulated node."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport incoming_frame
from shrimpmx.nic.held cimport held_frames
from shrimpmx.nic.lending cimport Lending
from shrimpmx.nic.letters cimport NicLetters, nic_letter
from shrimpmx.nic.page_interrupts cimport PageInterrupts
from shrimpmx.nic.port cimport Port
from shrimpmx.nic.updates cimport Updates
from shrimpmx.wire.vmmc cimport wire_vmmc


cdef class VmmcFirmware(Port):
    cdef readonly Updates updates
    cdef readonly PageInterrupts interrupts   # theirs
    cdef Lending lending             # None: only this agent acts as the NIC
    cdef readonly NicLetters letters
    cdef held_frames held            # whose DMA is under way
    cdef uint32_t captured           # the number in the capture of the frame dealt with

    cdef int act(self, int64_t now_ns) noexcept nogil
    cdef int receive(self, int64_t now_ns) noexcept nogil
    cdef void arrive(self) noexcept nogil
    cdef void complete(self) noexcept nogil
    cdef void take(self, const incoming_frame *arrived, int64_t now_ns) noexcept nogil
    cdef void update(self, const wire_vmmc *header, uint32_t source,
                     int64_t now_ns) noexcept nogil
    cdef void map_request(self, const wire_vmmc *header, uint32_t source,
                          int64_t now_ns) noexcept nogil
    cdef uint32_t mapped(self, const wire_vmmc *header, uint32_t source,
                         nic_letter *answer) noexcept nogil
    cdef void letter(self, const wire_vmmc *header, uint32_t source,
                     int64_t now_ns) noexcept nogil
    cdef uint32_t deliver(self, const wire_vmmc *header, uint32_t source,
                          int64_t now_ns) noexcept nogil
    cdef void answer(self, const wire_vmmc *header, uint32_t source, nic_letter *letter,
                     int64_t now_ns) noexcept nogil
    cdef void drop(self, int64_t now_ns, uint32_t counter) noexcept nogil
