"""Waiting for any of many sockets at a cost that idle ones do not add to.

One pass over the flags tells which sockets have changed; only these are examined, and those that
were ready before: a ready socket stays a *candidate* until it is found not ready, so that
readiness is by level, as select's. The words with credits are passed over only while a
registered sender waits for room.
"""

import os

from libc.errno cimport EBADF
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.sockets.network cimport Network, Waitable
from shrimpmx.sockets.slots cimport (
    SLOTS, SLOT_CONNECTED, SLOT_CONNECTING, SLOT_FRESH, SLOT_LISTENING, Slot, SlotTable,
)
from shrimpmx.wait.waiter cimport WAIT_READY, WAIT_STOPPED, WaitResult


# -- The pass over the words of all sockets: 4 KiB for 1024 of them, whatever they do.

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


cdef class WaitSet(Waitable):
    """Sockets of `network`, by slot, with the events that are waited for."""

    def __cinit__(self, Network network not None):
        self.network = network
        self.scan = FlagScan(network)
        self.watched = <Watched *>calloc(SLOTS, sizeof(Watched))
        self.candidates = <uint32_t *>calloc(SLOTS, sizeof(uint32_t))
        self.changed = <uint32_t *>calloc(3 * SLOTS, sizeof(uint32_t))
        if self.watched == NULL or self.candidates == NULL or self.changed == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.watched)
        free(self.candidates)
        free(self.changed)

    def register(self, uint32_t slot, uint8_t events) -> None:
        """Wait for `events` of the socket that has the slot; again: for others than before.

        OSError EBADF if there is no open socket.
        """
        if slot >= self.network.used or not is_open(&self.network.slots[slot]):
            raise OSError(EBADF, os.strerror(EBADF))
        self.watched[slot].serial = self.network.slots[slot].serial
        self.watched[slot].interest = events
        self.list_c(slot)

    def unregister(self, uint32_t slot) -> None:
        """Forget the slot's socket; harmless if it is not registered."""
        if slot < SLOTS:
            self.set_blocked_c(slot, False)
            self.watched[slot].interest = 0

    def wait(self, deadline_ns=None) -> list:
        """Wait until a socket is ready: (slot, events) of all that are, by slot.

        `deadline_ns`: on the run's clock, 0 to look only, None for ever. Past it: an empty list.
        A user-level thread lets others run meanwhile.
        OSError EBADF if a registered socket was closed; AbortedError if the run is being stopped.
        """
        cdef int64_t deadline = NEVER_NS if deadline_ns is None else deadline_ns
        cdef WaitResult result = WAIT_READY
        cdef uint32_t index
        cdef bint hooked = self.network.wait_hook is not None
        with nogil:
            self.network.drain_c()
            if not self.any_c() and deadline != 0 and not hooked:
                result = self.network.wait_ready_c(set_ready, <void *>self, deadline)
        if hooked and deadline != 0:
            # Of what a thread is woken for another one may have made use before it runs.
            while not self.any_c() and self.network.wait_hook(((self, True, False),), deadline):
                pass
        if self.broken:
            self.broken = False
            raise OSError(EBADF, os.strerror(EBADF))
        if result == WAIT_STOPPED:
            raise self.network.process.host.ended("the run is being stopped")
        slots = sorted([self.candidates[index] for index in range(self.count)])
        return [(slot, self.watched[<uint32_t>slot].ready) for slot in slots]

    cdef void list_c(self, uint32_t slot) noexcept nogil:
        if not self.watched[slot].listed:
            self.watched[slot].listed = True
            self.candidates[self.count] = slot
            self.count += 1

    cdef void set_blocked_c(self, uint32_t slot, bint blocked) noexcept nogil:
        if self.watched[slot].blocked != blocked:
            self.watched[slot].blocked = blocked
            if blocked:
                self.blocked += 1
            else:
                self.blocked -= 1

    cdef uint8_t examine_c(self, uint32_t slot) noexcept nogil:
        cdef Watched *watched = &self.watched[slot]
        cdef Slot *state = &self.network.slots[slot]
        cdef uint8_t found = 0
        self.examined += 1
        if state.serial != watched.serial or not is_open(state):
            self.broken = True
            watched.interest = 0
            self.set_blocked_c(slot, False)
            return 0
        if watched.interest & WAIT_READ and self.network.readable_c(slot):
            found |= WAIT_READ
        if watched.interest & WAIT_WRITE:
            # Counted before the look: what frees room later is found by the next pass.
            self.set_blocked_c(slot, True)
            if self.network.writable_c(slot):
                found |= WAIT_WRITE
                self.set_blocked_c(slot, False)
        else:
            self.set_blocked_c(slot, False)
        return found

    cdef bint any_c(self) noexcept nogil:
        return self.look_c() > 0 or self.broken

    cdef uint32_t look_c(self) noexcept nogil:
        cdef uint32_t found, index, slot, kept = 0
        found = self.scan.changed_c(self.changed, self.blocked > 0)
        for index in range(found):
            if self.watched[self.changed[index]].interest:
                self.list_c(self.changed[index])
        for index in range(self.count):
            slot = self.candidates[index]
            self.watched[slot].ready = 0
            if self.watched[slot].interest:
                self.watched[slot].ready = self.examine_c(slot)
            if self.watched[slot].ready:
                self.candidates[kept] = slot
                kept += 1
            else:
                self.watched[slot].listed = False
        self.count = kept
        return kept


cdef inline bint is_open(const Slot *slot) noexcept nogil:
    return (slot.state == SLOT_FRESH or slot.state == SLOT_LISTENING
            or slot.state == SLOT_CONNECTING or slot.state == SLOT_CONNECTED)


cdef bint set_ready(void *context) noexcept nogil:
    if (<WaitSet>context).any_c():
        return True
    (<WaitSet>context).network.drain_c()
    return (<WaitSet>context).any_c()
