"""The compiled loop that drives the agents of one process."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.shared.agent cimport Agent
from shrimpmx.wait.waiter cimport Waiter

# One process's agents and what their last pass left behind; plain C, so that the compiled
# waiting strategies can drive it.
cdef struct RunnerState:
    void **agents            # borrowed references; the Runner keeps the agents alive
    uint32_t agents_count
    void *host               # the Host of the process
    int64_t due_ns           # soonest time at which an agent wants to run by itself
    int64_t awaited_ns       # the due time that the present wait is for
    int64_t busy_until_ns    # an agent works until then: its host takes that long
    bint keeps_waiting       # an agent has given work to a process on the same CPU
    bint wants_demotion      # an agent does not catch up
    bint failed              # an agent's step raised
    int64_t pass_ns          # what a pass takes beside its agents' own time
    bint are_nics            # their steps and frames are paid for
    uint64_t frames, bytes   # of the agents' NICs so far


cdef class Runner:
    cdef RunnerState state
    cdef readonly list agents
    cdef readonly Waiter waiter
    cdef readonly int64_t early_wake_ns
    cdef readonly int realtime
    cdef bint demoted
    cdef int64_t awake_ns        # when it was first seen awake after its last sleep, or began
    cdef uint64_t blocks_seen    # its account's sleeps then

    cdef int _add(self, Agent agent) except -1
    cdef void drive(self) noexcept nogil
    cdef void idle(self) noexcept nogil
    cdef void work(self) noexcept nogil
    cdef void rest(self) noexcept nogil
    cdef bint awake_too_long(self) noexcept nogil
    cdef int64_t awake_for(self) noexcept nogil
    cdef void nap(self, int64_t duration_ns) noexcept nogil
    cdef void heed_demotion(self) noexcept nogil
