"""The sockets that a selector waits for, and the pass that finds those that have changed."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.sockets.network cimport Network, Waitable
from shrimpmx.sockets.slots cimport SlotTable

# -- Which sockets have changed since one looked: their words compared with what was last seen.

cdef class FlagScan:
    cdef SlotTable table
    cdef uint32_t *seen             # [3][SLOTS]: arrivals, credits, events
    cdef uint32_t events_count      # of the table, when last seen
    cdef readonly uint32_t found    # slots that the last pass found changed

    # Slots that have changed since the last pass, into `changed` [SLOTS], each at least once and
    # at most three times; how many entries. `credits`: look at the credit words as well.
    cdef uint32_t changed_c(self, uint32_t *changed, bint credits) noexcept nogil
    # Is there any? Does not take note of it.
    cdef bint any_c(self, bint credits) noexcept nogil


cdef enum WaitEvents:
    WAIT_READ = 1      # the values of selectors.EVENT_READ and EVENT_WRITE
    WAIT_WRITE = 2

# What the set knows of a slot.
cdef struct Watched:
    uint32_t serial    # of the socket that was registered
    uint8_t interest   # enum WaitEvents; 0: not registered
    uint8_t ready      # ... of them, when last examined
    bint listed        # a candidate
    bint blocked       # it waits for room in its peer's buffer


cdef class WaitSet(Waitable):
    cdef readonly Network network
    cdef FlagScan scan
    cdef Watched *watched             # [SLOTS]
    cdef uint32_t *candidates         # slots that may be ready
    cdef uint32_t *changed            # [3 * SLOTS]
    cdef uint32_t count               # of candidates
    cdef uint32_t blocked             # senders that wait for room
    cdef bint broken                  # one of the sockets has been closed
    cdef readonly uint64_t examined   # sockets looked at one by one, so far

    cdef void list_c(self, uint32_t slot) noexcept nogil
    cdef void set_blocked_c(self, uint32_t slot, bint blocked) noexcept nogil
    # Takes note of what has changed and examines the candidates; how many are ready.
    cdef uint32_t look_c(self) noexcept nogil
    cdef uint8_t examine_c(self, uint32_t slot) noexcept nogil
