"""Whose turn it is on a simulated CPU: the base class of the schedulers.

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
        self.waiting.remove(one)
        self.running = one
        return 0
