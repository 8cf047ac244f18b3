"""Whose turn it is on a simulated CPU: the base class of the schedulers.

A scheduler knows the tasks of one CPU that want it and the one that has it. It neither reads the
clock nor moves it: the CPU tells what happens and when.
"""

from libc.stdint cimport int64_t

from shrimpmx.native.clock cimport NEVER_NS


cdef class Schedulable(CpuUser):
    """What takes turns on a CPU."""


cdef class Scheduler:
    """Base of the schedulers; this one lets each task run until it leaves, as they came."""

    def __cinit__(self, *_arguments, **_named):
        self.waiting = []

    cdef int wake(self, Schedulable one, int64_t now_ns) except -1:
        self.waiting.append(one)
        return 0

    cdef int arrive(self, Schedulable one, Scheduler other, int64_t now_ns) except -1:
        return self.wake(one, now_ns)

    cdef void charge(self, int64_t ran_ns) noexcept:
        pass

    cdef int64_t turn_ends_ns(self) noexcept:
        return NEVER_NS

    cdef int review(self, int64_t now_ns) except -1:
        return 0

    cdef int dispatch(self, int64_t now_ns) except -1:
        self.running = self.waiting.pop(0)
        return 0

    cdef int give_way(self, int64_t now_ns) except -1:
        cdef Schedulable one = self.running
        one.preemptions += 1  # as the kernel counts a yield
        self.running = None
        self.dispatch(now_ns)
        self.waiting.append(one)
        return 0

    cdef void leave(self) noexcept:
        self.running = None

    cdef int put_back(self) except -1:
        self.running.preemptions += 1
        self.waiting.append(self.running)
        self.running = None
        return 0
