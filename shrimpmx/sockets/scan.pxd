"""Which sockets have changed since one looked: their words compared with what was last seen."""

from libc.stdint cimport uint32_t

from shrimpmx.sockets.slots cimport SlotTable


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
