"""What a task of a simulated host waits for, and what it pays for its CPU."""

from libc.stdint cimport int64_t, uint64_t

from shrimpmx.costs.rows cimport cost_row
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.simulation.host cimport SimulatedHost
from shrimpmx.simulation.scheduler cimport Schedulable


cdef enum State:
    RUNNABLE, COMPUTING, POLLING, ASLEEP, ENDED


# Whether a sleep until then sets the clock of its core, which would tick later.
cdef inline bint sets_timer(int64_t tick_ns, int64_t until_ns, int64_t now_ns) noexcept nogil:
    return until_ns != NEVER_NS and now_ns < until_ns < now_ns + tick_ns


cdef class Waiting(Schedulable):
    cdef readonly SimulatedHost host
    cdef readonly int64_t looks
    cdef readonly str name
    cdef State status
    cdef bint offers, polls          # whether it polled when its code last ran
    cdef int64_t left_ns, until_ns, period_ns
    cdef int64_t comes_ns, stall_ns  # NEVER_NS: nothing has woken it; how long its core stops then
    cdef cost_row stalled_by         # what that stop costs
    cdef bint woken                  # ... by another one, not by its time
    cdef int64_t timer_ns            # the time that ends its sleep; NEVER_NS: none does, or it has
    cdef uint64_t *news              # how much has happened on its node
    cdef uint64_t seen               # ... at its last look

    # Its poll or sleep ends now, whether there is news or not.
    cdef void ends_wait(self, int64_t now_ns) noexcept
    # It begins then, unless it does so sooner, and its core is stopped for so long before.
    cdef void comes(self, int64_t begins_ns, int64_t stall_ns, cost_row stalled_by) noexcept
    # It has had its CPU for so long.
    cdef void runs(self, int64_t ran_ns) noexcept
    # Of one that polls: whether its next look is not in vain.
    cdef bint has_news(self, int64_t now_ns) noexcept
    # What is left of the pass in which it has woken others.
    cdef int64_t pass_left_ns(self) noexcept
    # Whether it goes on only if something happens on its node; no time ends its wait.
    cdef bint is_in_vain(self) noexcept


# So long after the agents' last deed turns of tasks that all wait in vain are passed over (ours).
cdef enum:
    QUIET_NS = 1_000_000

# Whether all of them wait in vain.
cdef bint are_in_vain(list tasks) except -1
# The errors of tasks for which nothing will come, and of such as are late: what each waits for.
cdef object deadlock_of(list tasks)
cdef object lateness_of(list tasks)
