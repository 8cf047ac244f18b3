"""The fair scheduler: tasks share a CPU by what each has had of it."""

from libc.stdint cimport int64_t

from shrimpmx.simulation.scheduler cimport IDLE, NORMAL, Schedulable, Scheduler

# A task that has slept is behind the others by so many slices at most (Linux: half of the period
# in which each gets its turn, which is eight of its shortest slices).
cdef int64_t CREDIT_SLICES = 4


cdef class FairScheduler(Scheduler):
    """As Linux 2.6.23 to 6.5 (CFS): the one that has had the least comes first.

    One that has slept counts as no more than half a round behind the least of the others, and takes
    the CPU at once from one that has had `wakeup_ns` more, unless it is batch or idle; from an idle
    one it always does. `batch`: all are batch. A turn lasts `slice_ns`, and until the next tick.
    """

    cdef int64_t slice_ns, turn_ends
    cdef bint batch
    cdef double least_ns, wakeup_ns

    def __init__(self, int64_t slice_ns, int64_t wakeup_ns, bint batch=False):
        self.slice_ns, self.wakeup_ns, self.batch = slice_ns, wakeup_ns, batch

    cdef int wake(self, Schedulable one, int64_t now_ns) except -1:
        one.had_ns = max(one.had_ns, self._floor_ns() - CREDIT_SLICES * self.slice_ns)
        if not self.waiting:
            self.turn_ends = self.tick_from(now_ns + self.slice_ns)
        self.waiting.append(one)
        if self.running is not None and self._preempts(one, self.running):
            self.put_back()
        return 0

    cdef bint _preempts(self, Schedulable one, Schedulable running) noexcept:
        if running.policy == IDLE and one.policy != IDLE:
            return True
        if self.batch or one.policy != NORMAL:
            return False
        return running.had_ns - one.had_ns > self.wakeup_ns / one.weight

    cdef int arrive(self, Schedulable one, Scheduler other, int64_t now_ns) except -1:
        # How far it is ahead of others moves with it, not what it has had.
        one.had_ns += self._floor_ns() - (<FairScheduler>other)._floor_ns()
        other.leave()
        return self.wake(one, now_ns)

    cdef void charge(self, int64_t now_ns, int64_t ran_ns) noexcept:
        self.running.had_ns += ran_ns / self.running.weight

    cdef int64_t turn_ends_ns(self, int64_t since_ns) noexcept:
        return self.turn_ends

    cdef int review(self, int64_t now_ns) except -1:
        if now_ns >= self.turn_ends:
            self.turn_ends = self.tick_from(now_ns + self.slice_ns)
            if self._next().had_ns <= self.running.had_ns:
                self.put_back()
        return 0

    cdef int dispatch(self, int64_t now_ns) except -1:
        self.turn_ends = self.tick_from(now_ns + self.slice_ns)
        return self.start(self._next())

    cdef double _floor_ns(self) noexcept:
        """The least that one of the tasks here has had; it never falls."""
        cdef Schedulable one
        cdef double least_ns = -1.0 if self.running is None else self.running.had_ns
        for one in self.waiting:
            if least_ns < 0 or one.had_ns < least_ns:
                least_ns = one.had_ns
        self.least_ns = max(self.least_ns, least_ns)
        return self.least_ns

    cdef Schedulable _next(self):
        """The one that waits and has had the least; of equals the one that came first."""
        cdef Schedulable best = self.waiting[0], other
        for other in self.waiting:
            if other.had_ns < best.had_ns:
                best = other
        return best
