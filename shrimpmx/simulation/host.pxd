"""The host of a rank whose CPU time a simulation hands out."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport agent_record, runner_record


cdef class SimulatedHost(Host):
    cdef object task
    cdef const uint32_t *word        # the task sleeps until it differs from `seen`; NULL: none
    cdef uint32_t seen
    cdef runner_record *runner       # of its account; NULL: it has none
    cdef agent_record *record        # of the task's counters; NULL: it has none

    # Grows with what the task does beside looking.
    cdef uint64_t deeds(self) noexcept nogil
    # Whether what the task sleeps on has changed.
    cdef bint is_roused(self) noexcept nogil
    cdef bint ask(self, operation, argument) noexcept
    cdef bint ask_offer(self, until_ns) noexcept
