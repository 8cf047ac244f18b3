"""What a program's work is, and which parts of it count; see shared/section.h."""

from libc.stdint cimport uint32_t

from shrimpmx.shared.control cimport Control

cdef void section_start(Control control, uint32_t runner)
# The last that MPI_Init does: wait until all `ranks` of the run are so far, and begin to work at
# one moment with them.
cdef void work_begin(uint32_t ranks) noexcept nogil
# What comes now is none of the program's work, but its end. At the second time it does nothing.
cdef void work_end() noexcept nogil
# Note whether this rank has sent or got a message so far.
cdef void note_silence() noexcept nogil
# MPI_Pcontrol. Level 0 ends this rank's section, 1 or 2 begins it; others, and a change to what is,
# do nothing. In a world of one without mpirun nothing counts.
cdef int pcontrol(int level) noexcept nogil
