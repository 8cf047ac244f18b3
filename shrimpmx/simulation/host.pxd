"""The host of a rank whose CPU time a simulation hands out."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.futex cimport wait_slot
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport agent_record, runner_record


cdef enum Wish:
    COMPUTE, POLL, OFFER, SLEEP


# What a host asks for CPU time. `until_ns` is NEVER_NS where nothing limits it.
cdef class CpuUser:
    cdef readonly int64_t used_ns    # CPU time so far
    cdef int64_t kernel_ns           # of it in the kernel: yields, and runs of its scheduler
    cdef readonly int64_t sleeps, preemptions

    # Use so much CPU time.
    cpdef int compute(self, int64_t duration_ns) except -1
    # Keep the CPU until something has happened that a look may show.
    cpdef int poll(self, int64_t until_ns) except -1
    # Let others on the CPU go first; alone there, as poll(). How often it has offered it: each time
    # is a run of the kernel's scheduler.
    cpdef int64_t offer(self, int64_t until_ns) except -1
    # Leave the CPU until its host is roused, or until then.
    cpdef int sleep(self, int64_t until_ns) except -1


cdef class SimulatedHost(Host):
    cdef CpuUser task
    cdef const uint32_t *word        # the task sleeps until it differs from `seen`; NULL: none
    cdef uint32_t seen
    cdef runner_record *runner       # of its account; NULL: it has none
    cdef agent_record *record        # of the task's counters; NULL: it has none
    cdef wait_slot *slot             # whose notifications it takes; NULL: none
    cdef uint64_t handled            # of these
    cdef uint64_t handler_runs
    cdef int64_t pass_ns             # of the agents that the task drives; 0: it drives none

    # Grows with what the task does beside looking.
    cdef uint64_t deeds(self) noexcept nogil
    # Run the handler for what notifications have come: the CPU time that it takes, -1 for none.
    cdef int64_t handle_notifications(self) noexcept nogil
    # Whether there are any.
    cdef bint is_notified(self) noexcept nogil
    # Whether a look may show something, when something has happened on its node.
    cdef bint may_see_news(self) noexcept nogil
    # Whether what the task sleeps on has changed.
    cdef bint is_roused(self) noexcept nogil
    cdef bint ask(self, Wish wish, int64_t argument) noexcept
    cdef int _ask(self, Wish wish, int64_t argument) except -1
