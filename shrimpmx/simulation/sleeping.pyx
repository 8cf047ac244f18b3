"""A CPU that sleeps when it has nothing to do, alone or with others.

Cores may share what is switched off while they sleep, as those of the multiqueue paper's dual-core
dies (4.3): then they sleep together, or not at all.
"""

from libc.stdint cimport int64_t


cdef class SleepingCpu(HandlerCpu):
    """Base of the emulated CPUs; a subclass says what tasks it has."""

    def __cinit__(self, *_arguments):
        self.others = []

    cdef bint has_tasks(self) noexcept:
        return False

    cdef int sleep_with(self, SleepingCpu other) except -1:
        self.others.append(other)
        other.others.append(self)
        return 0

    cdef bint is_idle(self, int64_t now_ns) noexcept:
        return now_ns >= self.handling_until_ns and not self.has_tasks()

    cdef bint may_sleep(self, int64_t now_ns) noexcept:
        cdef int64_t since_ns = max(self.left_ns, self.handling_until_ns)
        return self.is_idle(now_ns) and now_ns - since_ns > self.idle_after_ns

    cdef int64_t wake_up_ns(self, int64_t now_ns) noexcept:
        cdef SleepingCpu other
        if self.idle_exit_ns == 0 or not self.may_sleep(now_ns):
            return 0
        for other in self.others:
            if not other.may_sleep(now_ns):
                return 0
        return self.idle_exit_ns
