"""Which pages of a process interrupt: the waits' gate (waiting paper, 2.1 and section 4).

The owner sets a page's word; the NIC compares and exchanges BLOCK to FIRED when it raises the
interrupt, and the handler sets what is watched to OFF before it wakes the owner (vmmc.h).
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from shrimpmx.native.atomics cimport full_fence, load_relaxed_u32, store_relaxed_u32
from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.vmmc cimport (
    VMMC_EXPORTS, VMMC_PAGE_BLOCK, VMMC_PAGE_FIRED, VMMC_PAGE_NOTIFY, VMMC_PAGE_OFF,
    VMMC_PAGE_SHIFT, VMMC_PAGE_WATCHDOG, VMMC_WATCHED_MAX, vmmc_export, vmmc_exports_of,
    vmmc_pages_of, vmmc_process,
)


cdef void pages_open(Pages *pages, node_header *node, vmmc_process *process) noexcept:
    pages.process = process
    pages.exports = vmmc_exports_of(node, process)
    pages.words = <uint32_t *><void *>vmmc_pages_of(node, process)
    pages.mode = VMMC_PAGE_OFF
    memset(pages.words, 0, sizeof(uint32_t) * process.pages_count)
    process.watched[0] = process.pages_count - 1
    process.watched_count = 1
    pages.gate.enable = enable
    pages.gate.disable = disable
    pages.gate.always = always
    pages.gate.watch = watch
    pages.gate.never = never
    pages.gate.polled = polled
    pages.gate.context = pages


cdef void pages_exported(Pages *pages, uint64_t offset, uint64_t length) noexcept nogil:
    if pages.mode != VMMC_PAGE_OFF:
        set_words(pages, offset, length, pages.mode)


cdef void pages_withdrawn(Pages *pages, uint64_t offset, uint64_t length) noexcept nogil:
    set_words(pages, offset, length, VMMC_PAGE_OFF)


cdef bint pages_watch(Pages *pages, const void *start, uint32_t **addresses,
                      uint32_t count) noexcept nogil:
    cdef vmmc_process *process = pages.process
    cdef uint32_t[VMMC_WATCHED_MAX] wanted
    cdef uint32_t found = 0, i, k, page
    cdef uint64_t offset
    for i in range(count):
        offset = <uint64_t>(<const uint8_t *>addresses[i] - <const uint8_t *>start)
        page = <uint32_t>(offset >> VMMC_PAGE_SHIFT)
        if offset >= process.heap_bytes:
            return False
        k = 0
        while k < found and wanted[found - 1 - k] != page:  # the last one first: mostly it is it
            k += 1
        if k < found:
            continue
        if found == VMMC_WATCHED_MAX - 1:
            return False
        wanted[found] = page
        found += 1
    pages.lists += 1
    # No page may stay enabled that is no longer watched: nothing would disable it.
    disable(pages)
    for i in range(found):
        store_relaxed_u32(&process.watched[i], wanted[i])
    store_relaxed_u32(&process.watched[found], process.pages_count - 1)
    store_relaxed_u32(&process.watched_count, found + 1)
    return True


cdef void set_words(Pages *pages, uint64_t offset, uint64_t length,
                    uint32_t word) noexcept nogil:
    cdef uint64_t page, last = (offset + length - 1) >> VMMC_PAGE_SHIFT
    for page in range(offset >> VMMC_PAGE_SHIFT, last + 1):
        store_relaxed_u32(&pages.words[page], word)


cdef void set_mode(Pages *pages, uint32_t mode) noexcept nogil:
    """Every exported page whose owner agrees to be interrupted, and the mailbox, become so."""
    cdef uint32_t number
    cdef vmmc_export *shown
    pages.mode = mode
    for number in range(<uint32_t>VMMC_EXPORTS):
        shown = &pages.exports[number]
        if shown.generation and shown.interrupts:
            set_words(pages, shown.offset, shown.length, mode)
    store_relaxed_u32(&pages.words[pages.process.pages_count - 1], mode)
    full_fence()  # V2: before any look at data; pairs with V1


# -- the gate -----------------------------------------------------------------------

cdef void enable(void *context) noexcept nogil:
    cdef Pages *pages = <Pages *>context
    cdef vmmc_process *process = pages.process
    cdef uint32_t i, word
    cdef uint32_t *place
    for i in range(process.watched_count):
        place = &pages.words[process.watched[i]]
        word = load_relaxed_u32(place)
        if word != VMMC_PAGE_NOTIFY and word != VMMC_PAGE_WATCHDOG:
            store_relaxed_u32(place, VMMC_PAGE_BLOCK)
    full_fence()  # V2: enabled before the last look at the data; pairs with V1


cdef void disable(void *context) noexcept nogil:
    cdef Pages *pages = <Pages *>context
    cdef vmmc_process *process = pages.process
    cdef uint32_t i, word
    cdef uint32_t *place
    for i in range(process.watched_count):
        place = &pages.words[process.watched[i]]
        word = load_relaxed_u32(place)
        if word == VMMC_PAGE_BLOCK or word == VMMC_PAGE_FIRED:
            # The NIC may raise one more in between: it finds no waiter.
            store_relaxed_u32(place, VMMC_PAGE_OFF)


cdef void always(void *context) noexcept nogil:
    set_mode(<Pages *>context, VMMC_PAGE_NOTIFY)


cdef void watch(void *context) noexcept nogil:
    set_mode(<Pages *>context, VMMC_PAGE_WATCHDOG)


cdef void never(void *context) noexcept nogil:
    set_mode(<Pages *>context, VMMC_PAGE_OFF)


cdef void polled(void *context) noexcept nogil:
    cdef vmmc_process *process = (<Pages *>context).process
    store_relaxed_u32(&process.polled, process.polled + 1)  # its only writer is the owner
