"""Companions that only burn CPU."""

from libc.stdint cimport uint32_t

from shrimpmx.shared.agent cimport Agent


cdef class Hog(Agent):
    cdef void burn(self, uint32_t loads) noexcept nogil


cdef class Spinner(Hog):
    pass
