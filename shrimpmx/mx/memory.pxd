"""How handlers in other processes reach a user's buffer."""

from libc.stdint cimport uint64_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport Reach

cdef enum:
    REACH_LATER = -1         # no room for a bounce buffer now: try again when some is given back
    REACH_NEVER = -2         # it would be larger than half of the heap, or there is no heap

# 0, or one of the above. The reach holds until memory_give.
cdef int memory_reach(Library library, void *data, uint64_t length, Reach *reach) noexcept nogil
cdef void memory_give(Library library, Reach *reach) noexcept nogil
