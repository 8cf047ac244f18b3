"""A companion that only burns CPU."""

from shrimpmx.shared.agent cimport Agent


cdef class Hog(Agent):
    pass
