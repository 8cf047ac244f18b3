"""Which pages of a process interrupt: the waits' gate (waiting paper, 2.1 and section 4)."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.vmmc cimport vmmc_export, vmmc_process
from shrimpmx.wait.waiter cimport InterruptGate

cdef struct Pages:
    vmmc_process *process
    vmmc_export *exports
    uint32_t *words          # by page number; the last one is the mailbox's
    uint32_t lists           # of watched pages that were set so far: identifies the last one
    uint32_t mode            # what exported pages are between waits: OFF, NOTIFY, WATCHDOG
    InterruptGate gate

# All pages off, only the mailbox watched. `pages` must stay where it is as long as it is used.
cdef void pages_open(Pages *pages, node_header *node, vmmc_process *process) noexcept
# The pages of a buffer that is exported with interrupts from now on, or is withdrawn.
cdef void pages_exported(Pages *pages, uint64_t offset, uint64_t length) noexcept nogil
cdef void pages_withdrawn(Pages *pages, uint64_t offset, uint64_t length) noexcept nogil
# What the next waits watch: the pages of `count` places in the process's part of the heap, which
# begins at `start`, and the mailbox. False if they are too many, or lie elsewhere. A caller that
# keeps its list from wait to wait sets it again if `lists` tells that another one is in force.
cdef bint pages_watch(Pages *pages, const void *start, uint32_t **addresses,
                      uint32_t count) noexcept nogil
