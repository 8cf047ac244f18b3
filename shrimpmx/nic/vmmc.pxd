"""SHRIMP's NIC: one agent per emulated node, and the letters that it sends itself."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport incoming_frame
from shrimpmx.native.ring cimport ring
from shrimpmx.nic.dma cimport held_frames
from shrimpmx.nic.firmware cimport Port
from shrimpmx.nic.lent cimport Lending
from shrimpmx.nic.updates cimport PageInterrupts, Updates
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport vmmc_import, vmmc_letter, vmmc_process
from shrimpmx.wire.vmmc cimport wire_vmmc

# -- Letters that a NIC of SHRIMP's sends itself.

cdef enum:
    NIC_LETTERS = 1024           # that wait for room on the link (ours); a power of two
    NIC_LETTER_SLOT_BYTES = 128  # a frame of 60 bytes and its slot's head, whole cache lines
    MAPPED_BYTES = 12            # data of a letter MAPPED: generation and length of the export
    GONE_PER_STEP = 8            # peers that a closed process is told to in a step (ours)


# A letter to endpoint `endpoint` of node `node`, from our endpoint `source`.
cdef struct nic_letter:
    uint32_t node
    uint8_t endpoint
    uint8_t source
    uint8_t kind
    uint32_t status
    uint32_t tag
    uint32_t generation          # MAPPED: of the export
    uint64_t length              # MAPPED: of the export


cdef class NicLetters:
    cdef readonly Node node
    cdef node_header *header
    cdef uint64_t *counters      # the NIC agent's
    cdef ring *frames            # what is to be sent: a tx ring of the NIC's own
    cdef uint32_t closing_seen   # vmmc_node.closing when all processes were last looked at
    cdef bint more               # a process is not wholly closed yet
    cdef uint32_t endpoint       # the first that may be CLOSING
    cdef uint32_t position       # the first import of its table that may be left

    # False if there is no room.
    cdef bint put(self, const nic_letter *letter, int64_t now_ns) noexcept nogil
    # Tells the peers of processes that close, and closes them; how many letters.
    cdef int close_processes(self, int64_t now_ns) noexcept nogil
    cdef int tell_peers(self, vmmc_process *process, int64_t now_ns) noexcept nogil
    cdef bint tell(self, const vmmc_import *peer, int64_t now_ns) noexcept nogil


# Whether the data of a packet VMMC_LETTER is as long as its kind, if there is such a kind, wants.
cdef bint letter_fits(const wire_vmmc *header) noexcept nogil
# The letter of such a packet from node `source` as it lies in a mailbox: in host byte order.
cdef void letter_read(vmmc_letter *letter, const wire_vmmc *header,
                      uint32_t source) noexcept nogil


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
