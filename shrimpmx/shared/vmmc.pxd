"""SHRIMP's part of a node segment; see vmmc.h for the writers."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from shrimpmx.native.ring cimport ring
from shrimpmx.shared.layout cimport node_header, pthread_mutex_t

cdef extern from "shared/vmmc.h" nogil:
    enum:
        VMMC_PAGE_SHIFT
        VMMC_PAGE_BYTES
        VMMC_EXPORTS
        VMMC_IMPORTS
        VMMC_WATCHED_MAX
        VMMC_MAILBOX_ENTRIES
        VMMC_PORTS
        VMMC_LETTER_BYTES
        VMMC_NO_ENDPOINT
        VMMC_PAGE_OFF
        VMMC_PAGE_BLOCK
        VMMC_PAGE_FIRED
        VMMC_PAGE_NOTIFY
        VMMC_PAGE_WATCHDOG
        VMMC_CLOSED
        VMMC_OPEN
        VMMC_CLOSING
        VMMC_OPENING
        VMMC_LETTER_MAPPED
        VMMC_LETTER_BOUNCED
        VMMC_LETTER_GONE
        VMMC_LETTER_LIBRARY
        VMMC_OK
        VMMC_NOT_EXPORTED
        VMMC_NOT_ALLOWED
        VMMC_NO_PROCESS
        VMMC_NO_PORT
        VMMC_MAILBOX_FULL
    uint32_t VMMC_ANY_NODE
    cdef struct vmmc_export:
        uint32_t generation
        uint32_t allowed_node
        uint64_t offset
        uint64_t length
        uint32_t interrupts
    cdef struct vmmc_import:
        uint32_t generation
        uint16_t node
        uint16_t export_index
        uint64_t length
        uint8_t endpoint
    cdef struct vmmc_letter:
        uint16_t node
        uint8_t endpoint
        uint8_t kind
        uint32_t tag
        uint32_t status
        uint32_t generation
        uint8_t data[48]
    cdef struct vmmc_process:
        uint32_t state
        uint32_t session
        uint32_t runner
        uint32_t core
        uint64_t heap_offset
        uint64_t heap_bytes
        uint64_t pages_offset
        uint64_t exports_offset
        uint64_t imports_offset
        uint64_t mailbox_offset
        uint32_t pages_count
        uint32_t fired
        uint32_t notifications
        uint32_t polled
        uint32_t watched_count
        uint32_t watched[60]
    cdef struct vmmc_core:
        uint64_t pending[4]
        int64_t raised_ns
    cdef struct vmmc_node:
        uint32_t depositing
        pthread_mutex_t lock
        uint64_t processes_offset
        uint64_t cores_offset
        uint64_t ports_offset
        uint32_t closing
    vmmc_node *node_vmmc(node_header *node) noexcept
    vmmc_process *vmmc_process_of(node_header *node, uint32_t endpoint) noexcept
    vmmc_core *vmmc_core_of(node_header *node, uint32_t core) noexcept
    uint8_t *vmmc_ports_of(node_header *node) noexcept
    uint32_t *vmmc_pages_of(node_header *node, const vmmc_process *process) noexcept
    vmmc_export *vmmc_exports_of(node_header *node, const vmmc_process *process) noexcept
    vmmc_import *vmmc_imports_of(node_header *node, const vmmc_process *process) noexcept
    ring *vmmc_mailbox_of(node_header *node, const vmmc_process *process) noexcept
