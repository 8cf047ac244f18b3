"""Numbers of records in a table, as handles have them."""

from libc.stdint cimport uint32_t

cdef struct Numbers:         # all 0 at first
    uint32_t busy            # a thread changes them
    int fresh                # all below have been taken once
    int given                # how many were given back, and where these are
    int room
    int *places

# The number that was given back last, or a fresh one below `end`; -1: there is none.
cdef int number_take(Numbers *numbers, int end) noexcept nogil
cdef void number_give(Numbers *numbers, int number) noexcept nogil
