"""SHRIMP's NIC: one agent per emulated node."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.nic.lending cimport Lending
from shrimpmx.nic.letters cimport NicLetters, nic_letter
from shrimpmx.nic.page_interrupts cimport PageInterrupts
from shrimpmx.nic.port cimport Port, incoming_link
from shrimpmx.shared.layout cimport frame_slot
from shrimpmx.nic.updates cimport Updates
from shrimpmx.wire.rate cimport rate_line
from shrimpmx.wire.vmmc cimport wire_vmmc


cdef enum:
    # Packets whose DMA is under way; further ones wait on their link (ours). A power of two.
    DEPOSITS_MAX = 1024


cdef struct pending_deposit:
    frame_slot *slot             # of its link's ring; NULL: it was a bad one
    incoming_link *link
    int64_t due_ns               # when it is in memory


cdef class VmmcFirmware(Port):
    cdef readonly Updates updates
    cdef readonly PageInterrupts interrupts   # theirs
    cdef Lending lending             # None: only this agent acts as the NIC
    cdef readonly NicLetters letters
    cdef rate_line dma
    cdef int64_t dma_latency_ns
    cdef pending_deposit *pending
    cdef uint32_t pending_first      # free-running
    cdef uint32_t pending_count
    cdef int64_t deposit_ns          # when the first of them is due; NEVER_NS: there is none

    cdef int act(self, int64_t now_ns) noexcept nogil
    cdef int receive(self, int64_t now_ns) noexcept nogil
    cdef void arrive(self) noexcept nogil
    cdef void complete(self) noexcept nogil
    cdef void take(self, const frame_slot *slot, uint32_t source, int64_t now_ns) noexcept nogil
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
