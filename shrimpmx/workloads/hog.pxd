"""Companions that only burn CPU."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.shared.agent cimport Agent


cdef class Hog(Agent):
    cdef bint virtual                # time passes by what it declares

    # One loop of so many loads, unless the last one still takes its time; whether it was done.
    cdef bint burn(self, int64_t now_ns, uint32_t loads) noexcept nogil


cdef class Spinner(Hog):
    pass
