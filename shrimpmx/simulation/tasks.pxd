"""What a task of a simulated host waits for, and what it pays for its CPU."""

from libc.stdint cimport int64_t

from shrimpmx.native.clock cimport NEVER_NS


cdef enum State:
    RUNNABLE, COMPUTING, POLLING, ASLEEP, ENDED

# By the names of HostModelParameters, ns.
cdef struct task_costs:
    int64_t poll_ns, yield_ns
    int64_t switch_ns, wake_ns, preempt_ns, wake_call_ns, sleep_call_ns, timer_late_ns
    int64_t interrupt_exit_ns


# When a sleep ends that a time ends; NEVER_NS: none does.
cdef inline int64_t timer_ends_ns(const task_costs *costs, int64_t until_ns) noexcept nogil:
    return NEVER_NS if until_ns == NEVER_NS else until_ns + costs.timer_late_ns
