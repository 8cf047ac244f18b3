"""Frames of SHRIMP's NIC; see vmmc.h."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "wire/vmmc.h" nogil:
    enum:
        VMMC_ETHERTYPE
        VMMC_HEADER_BYTES
        VMMC_FLAG_INTERRUPT
        VMMC_UPDATE
        VMMC_MAP_REQUEST
        VMMC_LETTER
    cdef struct wire_vmmc:
        uint8_t packet, dst_endpoint, src_endpoint, flags
        uint16_t length, export_index
        uint32_t generation
        uint64_t offset
    uint64_t be64(uint64_t value) noexcept
