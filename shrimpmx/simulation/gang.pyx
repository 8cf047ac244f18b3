"""Coscheduling: the tasks of a gang have their CPUs at the same time."""

from libc.stdint cimport int64_t

from shrimpmx.simulation.scheduler cimport IDLE, Schedulable, Scheduler


cdef class GangMatrix:
    """Which task has which CPU in which slot, of all CPUs (Ousterhout 1982).

    A column is a CPU, a row is a slot of `slot_ns`; slots follow each other at the same time on all
    CPUs. The tasks of a gang are in one row, a second one of them on a CPU is in another. The gangs
    of most tasks come first; each takes the first row that has room for it. Idle tasks have none.
    """

    cdef readonly int64_t slot_ns
    cdef readonly int64_t rows
    cdef list tasks
    cdef bint arranged

    def __init__(self, int64_t slot_ns):
        self.slot_ns = slot_ns
        self.tasks = []

    cdef int seat(self, Schedulable one, int64_t column) except -1:
        """It runs on that CPU from now on."""
        if one.policy != IDLE and one.column != column:
            if one.column < 0:
                self.tasks.append(one)
            one.column = column
            self.arranged = False
        return 0

    cdef int64_t row(self, int64_t now_ns) except -1:
        """The row of that time."""
        if not self.arranged:
            self._arrange()
        return now_ns // self.slot_ns % self.rows

    cdef int _arrange(self) except -1:
        cdef Schedulable one
        cdef int64_t row
        taken = []
        for gang in sorted(self._gangs(), key=len, reverse=True):
            columns = {one.column for one in gang}
            row = 0
            while row < len(taken) and taken[row] & columns:
                row += 1
            if row == len(taken):
                taken.append(set())
            taken[row] |= columns
            for one in gang:
                one.row = row
        self.rows = max(1, len(taken))
        self.arranged = True
        return 0

    cdef list _gangs(self):
        """The tasks that share a row: of a gang, one of each CPU."""
        cdef Schedulable one
        gangs = {}
        counts = {}
        for number, one in enumerate(self.tasks):
            key = (one.gang, -1) if one.gang >= 0 else (-1, number)
            nth = counts[key, one.column] = counts.get((key, one.column), -1) + 1
            gangs.setdefault((key, nth), []).append(one)
        return list(gangs.values())


cdef class GangScheduler(Scheduler):
    """Of one CPU, which is a column of the matrix: the task of the current row has it.

    While that one sleeps, or has yielded in this slot, those of the next rows run, and it takes the
    CPU back when it wakes. Idle tasks run when there is no other.
    """

    cdef GangMatrix matrix
    cdef int64_t column, slot

    def __init__(self, GangMatrix matrix not None, int64_t column):
        self.matrix, self.column = matrix, column

    cdef int wake(self, Schedulable one, int64_t now_ns) except -1:
        self.matrix.seat(one, self.column)
        self.waiting.append(one)
        if self.running is not None and self._wait_for(one, now_ns) < self._wait_for(
                self.running, now_ns):
            self.put_back()
        return 0

    cdef int64_t turn_ends_ns(self, int64_t since_ns) noexcept:
        return (self.slot + 1) * self.matrix.slot_ns

    cdef int review(self, int64_t now_ns) except -1:
        if now_ns // self.matrix.slot_ns != self.slot:
            self.slot = now_ns // self.matrix.slot_ns
            if self._wait_for(self._next(now_ns), now_ns) < self._wait_for(self.running, now_ns):
                self.put_back()
        return 0

    cdef int dispatch(self, int64_t now_ns) except -1:
        self.slot = now_ns // self.matrix.slot_ns
        return self.start(self._next(now_ns))

    cdef int64_t _wait_for(self, Schedulable one, int64_t now_ns) except -1:
        """How many slots are before its own."""
        cdef int64_t row = self.matrix.row(now_ns)
        if one.row < 0:
            return self.matrix.rows
        return (one.row - row + self.matrix.rows) % self.matrix.rows

    cdef Schedulable _next(self, int64_t now_ns):
        cdef Schedulable best = self.waiting[0], one
        for one in self.waiting:
            if self._wait_for(one, now_ns) < self._wait_for(best, now_ns):
                best = one
        return best
