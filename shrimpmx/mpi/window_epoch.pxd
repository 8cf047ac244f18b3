"""Epochs of windows: fences, groups, locks, and the end of operations."""

from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.window cimport Window

# All of these under the lock, and may wait: the class of an error.
# Whether this rank may access that one's memory, which it may have to wait for.
cdef int access_allowed(Window *window, int rank) noexcept nogil
# Waits while too much of what was sent has not left.
cdef int make_room(Window *window) noexcept nogil
# Waits until gets of that rank's memory, or of all ranks' (ALL_RANKS), are over; `at_target`: and
# all operations there.
cdef enum:
    ALL_RANKS = -1
cdef int settle(Window *window, int rank, bint at_target) noexcept nogil
# All messages of this rank have left.
cdef int settle_sends(Window *window) noexcept nogil
# Whether an epoch is open that Win_free does not allow.
cdef bint is_within(const Window *window) noexcept nogil
cdef void window_epoch_fill(mpi_table *table) noexcept nogil
