"""What a task of a simulated host waits for, and whether that may still come."""

from libc.stdint cimport int64_t

from shrimpmx.native.clock cimport NEVER_NS

from shrimpmx.errors import DeadlineError, DeadlockError

STATES = ("runnable", "computing", "polling", "asleep", "ended")
WORDS = ("is ready", "computes", "polls", "sleeps", "has ended")


cdef class Waiting(Schedulable):
    """Base of the tasks: code on a CPU that goes on when what it waits for has come.

    `left_ns` of CPU time are missing until it has computed, or may look again, which it does every
    `period_ns`; it `offers` its CPU to others then. `until_ns` ends a poll or a sleep. One that was
    woken from another CPU begins there when its core has stopped for `stall_ns` from `comes_ns` on;
    so does one whose `timer_ns` ends the sleep first.
    """

    def __cinit__(self, *_arguments, **_named):
        self.comes_ns = self.timer_ns = NEVER_NS

    @property
    def state(self):
        """What it waits for, one of STATES."""
        return STATES[self.status]

    def words(self) -> str:
        """The same, in words."""
        return WORDS[self.status]

    cdef void ends_wait(self, int64_t now_ns) noexcept:
        if self.status == POLLING or self.status == ASLEEP:
            self.until_ns = min(self.until_ns, now_ns)
        if self.status == ASLEEP:
            self.timer_ns = min(self.timer_ns, now_ns)

    cdef void comes(self, int64_t begins_ns, int64_t stall_ns, cost_row stalled_by) noexcept:
        if self.comes_ns == NEVER_NS or begins_ns < self.comes_ns + self.stall_ns:
            self.comes_ns, self.stall_ns = begins_ns - stall_ns, stall_ns
            self.stalled_by = stalled_by

    cdef void runs(self, int64_t ran_ns) noexcept:
        self.used_ns += ran_ns
        if self.status != POLLING:
            self.left_ns = max(<int64_t>0, self.left_ns - ran_ns)
        elif ran_ns <= self.left_ns:
            self.left_ns -= ran_ns
        else:
            # It has looked in vain in between: the next look is at its period.
            ran_ns -= self.left_ns
            self.looks += (ran_ns + self.period_ns - 1) // self.period_ns
            self.left_ns = (self.period_ns - ran_ns % self.period_ns) % self.period_ns

    cdef bint has_news(self, int64_t now_ns) noexcept:
        return self.until_ns <= now_ns or (
            self.seen != self.news[0] and self.host.may_see_news())

    cdef int64_t pass_left_ns(self) noexcept:
        return self.left_ns if self.host.pass_ns > 0 and self.status == COMPUTING else 0

    cdef bint is_in_vain(self) noexcept:
        if self.status == ASLEEP:
            return self.until_ns == self.comes_ns == NEVER_NS
        if self.status == POLLING or (self.status == RUNNABLE and self.polls):
            return not self.has_news(NEVER_NS - 1)
        return self.status == ENDED


cdef bint are_in_vain(list tasks) except -1:
    cdef Waiting task
    for task in tasks:
        if not task.is_in_vain():
            return False
    return True


cdef object deadlock_of(list tasks):
    return ended_by(DeadlockError, "Deadlock: no rank can make progress", tasks)


cdef object lateness_of(list tasks):
    return ended_by(DeadlineError, "the run did not end in its virtual time", tasks)


cdef object ended_by(type kind, str what, list tasks):
    doing = "; ".join([f"{task.name} {task.words()}" for task in tasks])
    error = kind(f"{what}: {doing}")
    error.what = what
    return error
