"""MPI_Pcontrol: marks the parts of a program that count; see shared/section.h."""

from libc.stdint cimport uint32_t

from shrimpmx.shared.control cimport Control

cdef void section_start(Control control, uint32_t runner)
# Level 0 ends this rank's section, 1 or 2 begins it; others, and a change to what is, do nothing.
# In a world of one without mpirun nothing counts.
cdef int pcontrol(int level) noexcept nogil
