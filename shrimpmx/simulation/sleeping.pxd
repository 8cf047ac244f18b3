"""A CPU that sleeps when it has nothing to do, alone or with others."""

from libc.stdint cimport int64_t

from shrimpmx.simulation.agents cimport HandlerCpu


cdef class SleepingCpu(HandlerCpu):
    cdef int64_t idle_exit_ns        # to wake up; 0: it does not sleep
    cdef int64_t idle_after_ns       # after so long without work it does
    cdef int64_t handling_until_ns   # a handler has it until then
    cdef int64_t left_ns             # when its last task left it
    cdef list others                 # without which it does not sleep

    # Whether a task has it, or wants it.
    cdef bint has_tasks(self) noexcept
    # Whether neither a handler nor a task has it or wants it.
    cdef bint is_idle(self, int64_t now_ns) noexcept
    # Whether that has been so for long enough.
    cdef bint may_sleep(self, int64_t now_ns) noexcept
    # From now on neither sleeps while the other works.
    cdef int sleep_with(self, SleepingCpu other) except -1
