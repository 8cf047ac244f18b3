"""The fair scheduler: tasks share a CPU by what each has had of it."""

cimport cython
from libc.math cimport ceil
from libc.stdint cimport int64_t

from shrimpmx.simulation.scheduler cimport IDLE, NORMAL, Schedulable, Scheduler

# A round in which each task has its turn is of so many slices, or of one for each task if these are
# more (Linux: sched_nr_latency).
cdef int64_t ROUND_SLICES = 8


@cython.final
cdef class FairScheduler(Scheduler):
    """As Linux 2.6.23 to 6.5 (CFS): the one that has had the least comes first.

    A turn lasts the task's share of a round, by its weight, `slice_ns` at least, and until the next
    tick at which another one has had no more. It ends after `slice_ns` already where another one
    has had less by that share. If turns are `fixed`, a round has a slice for each task, so that
    equal ones have turns of `slice_ns`.

    One that has slept counts as no more than half of a round of ROUND_SLICES behind the least of
    the others, and takes the CPU at once from one that has had `wakeup_ns` more, unless it is batch
    or idle; from an idle one it always does. `batch`: all are batch. One that yields keeps the CPU
    if all others have had `wakeup_ns` more.
    """

    cdef int64_t slice_ns, began_ns, turn_ends
    cdef bint batch, fixed
    cdef double least_ns, wakeup_ns

    def __init__(self, int64_t slice_ns, int64_t wakeup_ns, bint batch=False, bint fixed=False):
        self.slice_ns, self.wakeup_ns, self.batch, self.fixed = slice_ns, wakeup_ns, batch, fixed

    cdef int wake(self, Schedulable one, int64_t now_ns) except -1:
        one.had_ns = max(one.had_ns, self._floor_ns() - ROUND_SLICES / 2 * self.slice_ns)
        self.waiting.append(one)
        if self.running is not None:
            self._set_turn(now_ns)
            if self._preempts(one, self.running):
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
        # From then on its yields have an effect.
        cdef double keeps_ns = self._keeps_ns() * self.running.weight
        if keeps_ns <= 0:
            return self.turn_ends
        return min(self.turn_ends, since_ns + <int64_t>ceil(keeps_ns))

    cdef int review(self, int64_t now_ns) except -1:
        cdef double ahead_ns
        if now_ns < self.turn_ends:
            return 0
        ahead_ns = self._next().had_ns - self.running.had_ns
        if ahead_ns <= 0:
            return self.put_back()
        # It goes on until it has had as much.
        ahead_ns = ceil(ahead_ns * self.running.weight)
        self.turn_ends = self.tick_from(now_ns + max(<int64_t>1, <int64_t>ahead_ns))
        return 0

    cdef int dispatch(self, int64_t now_ns) except -1:
        self.start(self._next())
        self.began_ns = now_ns
        return self._set_turn(now_ns)

    cdef bint give_way(self, int64_t now_ns) except -1:
        if not self.may_give_way():
            return False
        Scheduler.give_way(self, now_ns)
        self._set_turn(now_ns)  # beside the one that has yielded
        return True

    cdef bint may_give_way(self) noexcept:
        return self._keeps_ns() <= 0

    cdef double _keeps_ns(self) noexcept:
        """How much more the running one must have had for a yield to have an effect."""
        cdef Schedulable one = self.running
        return self._next().had_ns - one.had_ns - self.wakeup_ns / one.weight

    cdef int _set_turn(self, int64_t now_ns) except -1:
        """When the turn of the running one ends, beside those that wait now."""
        cdef Schedulable running = self.running, one
        cdef double load = running.weight, ahead_ns
        cdef int64_t tasks = 1 + len(self.waiting), slices, turn_ns, early_ns
        if tasks == 1:
            return 0
        for one in self.waiting:
            load += one.weight
        slices = tasks if self.fixed else max(ROUND_SLICES, tasks)
        turn_ns = <int64_t>max(
            <double>self.slice_ns, slices * self.slice_ns * running.weight / load)
        ahead_ns = running.had_ns - self._next().had_ns
        early_ns = now_ns + <int64_t>((turn_ns - ahead_ns) * running.weight)
        self.turn_ends = self.tick_from(max(now_ns, min(
            self.began_ns + turn_ns, max(self.began_ns + self.slice_ns, early_ns))))
        return 0

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
