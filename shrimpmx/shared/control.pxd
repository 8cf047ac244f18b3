"""The control segment: one per run, attached by every process."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.native.clock cimport Clock
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.shared.layout cimport agent_record, control_header, runner_record


cdef class Control:
    cdef control_header *header
    cdef readonly object segment
    cdef object memory       # a view: the segment stays mapped as long as this lives

    cdef Clock *clock(self) noexcept nogil
    cdef runner_record *runner(self, uint32_t index) noexcept nogil
    cdef agent_record *agent(self, uint32_t index) noexcept nogil
    cdef wait_slot *slot(self, uint32_t runner) noexcept nogil
    cdef runner_record *_checked_runner(self, uint32_t index) except NULL
    cdef agent_record *_checked_agent(self, uint32_t index) except NULL
