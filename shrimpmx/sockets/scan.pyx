"""The pass over the words of all sockets: 4 KiB for 1024 of them, whatever they do."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from shrimpmx.sockets.slots cimport SLOTS, SlotTable

cdef extern from *:
    """
    #include <stdint.h>

    #define SCAN_BLOCK 32 /* words that the compiler compares at once, in vector registers */

    /* Whether any of a block's words differs. Each word is read once or more often than that,
     * and is looked at again with an acquire load before what it announces is used. */
    static inline int block_differs(const uint32_t *words, const uint32_t *seen) {
        uint32_t difference = 0;
        for (uint32_t i = 0; i < SCAN_BLOCK; i++)
            difference |= words[i] ^ seen[i];
        return difference != 0;
    }

    /* Puts the indices of words that differ from `seen` into `changed`, and sees them. */
    static inline uint32_t scan_words(const volatile uint32_t *live, uint32_t *seen,
                                      uint32_t count, uint32_t *changed) {
        const uint32_t *words = (const uint32_t *)live;
        uint32_t found = 0;
        __asm__ volatile("" ::: "memory");
        for (uint32_t first = 0; first < count; first += SCAN_BLOCK) {
            if (!block_differs(words + first, seen + first))
                continue;
            for (uint32_t i = first; i < first + SCAN_BLOCK; i++) {
                uint32_t word = live[i];
                if (word != seen[i]) {
                    seen[i] = word;
                    changed[found++] = i;
                }
            }
        }
        return found;
    }

    static inline int scan_any(const volatile uint32_t *live, const uint32_t *seen,
                               uint32_t count) {
        const uint32_t *words = (const uint32_t *)live;
        __asm__ volatile("" ::: "memory");
        for (uint32_t first = 0; first < count; first += SCAN_BLOCK)
            if (block_differs(words + first, seen + first))
                return 1;
        return 0;
    }
    """
    uint32_t scan_words(const uint32_t *live, uint32_t *seen, uint32_t count,
                        uint32_t *changed) noexcept nogil
    bint scan_any(const uint32_t *live, const uint32_t *seen, uint32_t count) noexcept nogil


cdef class FlagScan:
    """What has changed in `table` since the last pass, or since this was made."""

    def __cinit__(self, SlotTable table not None):
        self.table = table
        self.seen = <uint32_t *>calloc(3 * SLOTS, sizeof(uint32_t))
        if self.seen == NULL:
            raise MemoryError
        self.events_count = table.events_count
        memcpy(self.seen, table.arrivals, SLOTS * sizeof(uint32_t))
        memcpy(self.seen + SLOTS, table.credits, SLOTS * sizeof(uint32_t))
        memcpy(self.seen + 2 * SLOTS, table.events, SLOTS * sizeof(uint32_t))

    def __dealloc__(self):
        free(self.seen)

    cdef uint32_t changed_c(self, uint32_t *changed, bint credits) noexcept nogil:
        cdef uint32_t found = scan_words(self.table.arrivals, self.seen, self.table.used, changed)
        if credits:
            found += scan_words(
                self.table.credits, self.seen + SLOTS, self.table.used, changed + found)
        if self.events_count != self.table.events_count:
            self.events_count = self.table.events_count
            found += scan_words(
                self.table.events, self.seen + 2 * SLOTS, self.table.used, changed + found)
        self.found = found
        return found

    cdef bint any_c(self, bint credits) noexcept nogil:
        return (self.events_count != self.table.events_count
                or scan_any(self.table.arrivals, self.seen, self.table.used)
                or credits and scan_any(self.table.credits, self.seen + SLOTS, self.table.used))
