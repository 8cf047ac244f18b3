"""Whose turn it is on a simulated CPU: the base of the schedulers, and that of real-time tasks.

A scheduler knows the tasks of one CPU that want it and the one that has it. It neither reads the
clock nor moves it: the CPU tells what happens and when.
"""

from libc.stdint cimport int64_t

from shrimpmx.native.clock cimport NEVER_NS

from shrimpmx.errors import InputError


# Linux's weights of the nice values -20 to 19: each step is about a tenth of the CPU.
WEIGHTS = (
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
)
cdef double NICE_0_WEIGHT = 1024
cdef double IDLE_WEIGHT = 3
POLICIES = ("normal", "batch", "idle")


cdef class Schedulable(CpuUser):
    """What takes turns on a CPU.

    `nice` is -20 to 19. A batch task preempts none when it wakes, an idle one gives way to all
    others. `gang`: those of one number want to run at once; -1: it is alone. `realtime`: the
    priority of a real-time task, 1 to 99, 0 of all others.
    """

    def __init__(self, int nice=0, policy="normal", int gang=-1, int realtime=0):
        if not -20 <= nice <= 19:
            raise InputError(f"a nice value is -20 to 19, not {nice}")
        if policy not in POLICIES:
            raise InputError(f"a task is {', '.join(POLICIES)}, not {policy!r}")
        if not 0 <= realtime <= 99:
            raise InputError(f"a real-time priority is 1 to 99, not {realtime}")
        self.nice, self.gang, self.realtime = nice, gang, realtime
        self.policy = POLICIES.index(policy)
        self.weight = (
            IDLE_WEIGHT if self.policy == IDLE else <double>WEIGHTS[nice + 20]) / NICE_0_WEIGHT
        self.row = self.column = -1


cdef class Scheduler:
    """Base of the schedulers; this one lets each task run until it leaves, as they came."""

    def __cinit__(self, *_arguments, **_named):
        self.waiting = []

    def use_ticks(self, int64_t tick_ns, int64_t ahead_ns=0) -> None:
        """Turns end at the ticks of the host's clock, `tick_ns` apart, the first of them after
        `tick_ns` - `ahead_ns`. Without a call they end at any time."""
        self.tick_ns, self.ahead_ns = tick_ns, ahead_ns

    cdef int64_t tick_from(self, int64_t time_ns) noexcept:
        cdef int64_t over_ns
        if self.tick_ns == 0:
            return time_ns
        over_ns = (time_ns + self.ahead_ns) % self.tick_ns
        return time_ns if over_ns == 0 else time_ns - over_ns + self.tick_ns

    cdef int wake(self, Schedulable one, int64_t now_ns) except -1:
        self.waiting.append(one)
        return 0

    cdef int arrive(self, Schedulable one, Scheduler other, int64_t now_ns) except -1:
        other.leave()
        return self.wake(one, now_ns)

    cdef void charge(self, int64_t now_ns, int64_t ran_ns) noexcept:
        pass

    cdef int64_t turn_ends_ns(self, int64_t since_ns) noexcept:
        return NEVER_NS

    cdef int review(self, int64_t now_ns) except -1:
        return 0

    cdef int dispatch(self, int64_t now_ns) except -1:
        return self.start(self.waiting[0])

    cdef bint give_way(self, int64_t now_ns) except -1:
        cdef Schedulable one = self.running
        self.running = None
        self.dispatch(now_ns)
        one.preemptions += 1  # as the kernel counts a yield
        self.waiting.append(one)
        return True

    cdef bint may_give_way(self) noexcept:
        return True

    cdef int leave(self) except -1:
        self.running = None
        return 0

    cdef int put_back(self) except -1:
        self.running.preemptions += 1
        self.waiting.append(self.running)
        self.running = None
        return 0

    cdef int start(self, Schedulable one) except -1:
        cdef Py_ssize_t place = 0
        while self.waiting[place] is not one:
            place += 1
        del self.waiting[place]
        self.running = one
        return 0


# -- Real-time tasks on a simulated CPU, above those that another scheduler has.

cdef class RealtimeScheduler(Scheduler):
    """First in, first out by priority (SCHED_FIFO); other tasks as `others` has them.

    A real-time task runs until it sleeps, or one of a higher priority wakes; that it has taken the
    CPU from has it back before others of its own priority.
    """

    cdef Scheduler others
    cdef list queue                  # real-time tasks that wait, in the order of their turns
    cdef Schedulable first           # the real-time task that runs; None: none does

    def __init__(self, Scheduler others not None):
        self.others = others
        self.queue = []

    cdef int wake(self, Schedulable one, int64_t now_ns) except -1:
        if one.realtime == 0:
            self.others.wake(one, now_ns)
        else:
            self.enqueue(one, False)
            self._take_for(one)
        return self._tell()

    cdef int _take_for(self, Schedulable one) except -1:
        """The running task gives the CPU back if `one` comes before it."""
        if self.first is not None:
            if one.realtime > self.first.realtime:
                self.first.preemptions += 1
                self.enqueue(self.first, True)
                self.first = None
        elif self.others.running is not None:
            self.others.put_back()
        return 0

    cdef int enqueue(self, Schedulable one, bint ahead) except -1:
        cdef Schedulable other
        cdef int place = 0
        for other in self.queue:
            if other.realtime < one.realtime or (ahead and other.realtime == one.realtime):
                break
            place += 1
        self.queue.insert(place, one)
        return 0

    cdef int _tell(self) except -1:
        self.running = self.others.running if self.first is None else self.first
        self.waiting = [*self.queue, *self.others.waiting]
        return 0

    cdef int arrive(self, Schedulable one, Scheduler other, int64_t now_ns) except -1:
        cdef RealtimeScheduler there = <RealtimeScheduler>other
        if one.realtime != 0:
            there.leave()
            return self.wake(one, now_ns)
        self.others.arrive(one, there.others, now_ns)
        there._tell()
        return self._tell()

    cdef void charge(self, int64_t now_ns, int64_t ran_ns) noexcept:
        if self.first is None:
            self.others.charge(now_ns, ran_ns)

    cdef int64_t turn_ends_ns(self, int64_t since_ns) noexcept:
        if self.first is not None or not self.others.waiting:
            return NEVER_NS
        return self.others.turn_ends_ns(since_ns)

    cdef int review(self, int64_t now_ns) except -1:
        if self.first is None and self.others.waiting:
            self.others.review(now_ns)
            return self._tell()
        return 0

    cdef int dispatch(self, int64_t now_ns) except -1:
        if self.queue:
            self.first = self.queue.pop(0)
        else:
            self.others.dispatch(now_ns)
        return self._tell()

    cdef bint give_way(self, int64_t now_ns) except -1:
        cdef bint gave = False
        if self.first is None and self.others.waiting:
            gave = self.others.give_way(now_ns)
            self._tell()
        return gave

    cdef bint may_give_way(self) noexcept:
        return self.first is None and self.others.waiting and self.others.may_give_way()

    cdef int leave(self) except -1:
        if self.first is not None:
            self.first = None
        else:
            self.others.leave()
        return self._tell()
