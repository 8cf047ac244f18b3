"""The scheduler of today's Linux: the earliest deadline of those that are owed CPU time."""

from libc.math cimport ceil
from libc.stdint cimport int64_t

from shrimpmx.simulation.scheduler cimport IDLE, NORMAL, Schedulable, Scheduler

# What a task is owed, or owes, when it wakes: so many of its requests at most, or a tick (Linux).
cdef double LAG_SLICES = 2


cdef class EevdfScheduler(Scheduler):
    """Earliest eligible virtual deadline first (Stoica and Abdel-Wahab 1995), as Linux since 6.6.

    Virtual time is what each would have had, had all had the same by their weights: the mean of
    what they have had. One that has had no more than that is eligible. Each asks for `slice_ns` of
    CPU time, and its deadline is what it will have had then. Of those that are eligible the one of
    the earliest deadline runs, until it has had its request, and until the next tick; a task that
    wakes may take the CPU from one that is not eligible any more. What a task is owed
    when it sleeps it has when it wakes. One that yields forfeits what is left of its request, and
    asks for another one (Linux 6.19, and 6.18 by a later repair); one that is not eligible loses
    nothing by it.
    """

    cdef double slice_ns, virtual_ns
    cdef bint served                 # the running one has had its request
    cdef int64_t turn_ends           # ... and goes on until then

    def __init__(self, int64_t slice_ns):
        self.slice_ns = slice_ns

    cdef int wake(self, Schedulable one, int64_t now_ns) except -1:
        cdef double others = self._weight()
        self._pass()
        one.had_ns = self.virtual_ns
        if others > 0:
            # Its own weight moves the mean.
            one.had_ns -= one.lag_ns * (others + one.weight) / others
        one.deadline_ns = one.had_ns + self.slice_ns / one.weight
        if not self.waiting:
            self.turn_ends = self.tick_from(now_ns)
        self.waiting.append(one)
        if self.running is not None and self._preempts(one, self.running):
            self.put_back()
        return 0

    cdef bint _preempts(self, Schedulable one, Schedulable running) except -1:
        if running.policy == IDLE and one.policy != IDLE:
            return True
        if one.policy != NORMAL:
            return False
        self._pass()
        return running.had_ns > self.virtual_ns and self._best() is one

    cdef void charge(self, int64_t now_ns, int64_t ran_ns) noexcept:
        cdef Schedulable one = self.running
        one.had_ns += ran_ns / one.weight
        if one.had_ns >= one.deadline_ns:
            if not self.served:
                self.turn_ends = self.tick_from(
                    now_ns - <int64_t>((one.had_ns - one.deadline_ns) * one.weight))
            one.deadline_ns = one.had_ns + self.slice_ns / one.weight
            self.served = True

    cdef int64_t turn_ends_ns(self, int64_t since_ns) noexcept:
        cdef Schedulable one = self.running
        if self.served:
            return max(since_ns, self.turn_ends)
        return self.tick_from(
            since_ns + <int64_t>ceil((one.deadline_ns - one.had_ns) * one.weight))

    cdef int review(self, int64_t now_ns) except -1:
        if self.served and now_ns >= self.turn_ends:
            self.served = False
            self._pass()
            if self._best() is not self.running:
                self.put_back()
        return 0

    cdef int dispatch(self, int64_t now_ns) except -1:
        self._pass()
        self.served = False
        return self.start(self._best())

    cdef bint give_way(self, int64_t now_ns) except -1:
        cdef Schedulable one = self.running
        self._pass()
        if one.had_ns <= self.virtual_ns:
            one.had_ns = one.deadline_ns
            one.deadline_ns += self.slice_ns / one.weight
            self._pass()
        if self._best() is one:
            return False
        self.put_back()
        self.dispatch(now_ns)
        return True

    cdef int leave(self) except -1:
        cdef Schedulable one = self.running
        cdef double most_ns = max(LAG_SLICES * self.slice_ns, self.tick_ns) / one.weight
        self._pass()
        one.lag_ns = max(-most_ns, min(most_ns, self.virtual_ns - one.had_ns))
        self.running = None
        self._pass()
        return 0

    cdef double _weight(self) noexcept:
        cdef Schedulable one
        cdef double total = 0 if self.running is None else self.running.weight
        for one in self.waiting:
            total += one.weight
        return total

    cdef int _pass(self) except -1:
        """Bring virtual time up to date; it stands still while there is no task."""
        cdef Schedulable one
        cdef double total = self._weight(), ahead = 0
        if total > 0:
            if self.running is not None:
                ahead = self.running.weight * (self.running.had_ns - self.virtual_ns)
            for one in self.waiting:
                ahead += one.weight * (one.had_ns - self.virtual_ns)
            self.virtual_ns += ahead / total
        return 0

    cdef Schedulable _best(self):
        """The eligible one of the earliest deadline; of equals the first that waits."""
        cdef Schedulable best = None, one
        cdef list tasks = self.waiting if self.running is None else [*self.waiting, self.running]
        # Rounding may leave none eligible.
        cdef double eligible_ns = max(self.virtual_ns, _least_ns(tasks))
        for one in tasks:
            if one.had_ns <= eligible_ns and (best is None or one.deadline_ns < best.deadline_ns):
                best = one
        return best


cdef double _least_ns(list tasks) noexcept:
    """What the one has had that has had the least."""
    cdef Schedulable one = tasks[0]
    cdef double least_ns = one.had_ns
    for one in tasks:
        least_ns = min(least_ns, one.had_ns)
    return least_ns
