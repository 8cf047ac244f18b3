"""A CPU that sleeps when it has nothing to do, alone or with others, and how it is woken."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport RATIOS_MAX
from shrimpmx.simulation.agents cimport HandlerCpu


cdef enum:
    IDLE_STATES_MAX = 8              # as HostCosts of the settings


# What a CPU does that has had no work for longer than `after_ns`.
cdef struct idle_state:
    int64_t after_ns
    int64_t exit_ns                  # to wake up


# How CPUs are woken: out of deeper and deeper states, of none if they do not sleep. What that takes
# is its cost times a ratio that is drawn.
cdef struct wake_ups:
    int count
    idle_state state[IDLE_STATES_MAX]
    int ratios
    double ratio[RATIOS_MAX]


# Those of HostModelParameters.
cdef wake_ups wake_ups_of(model) except *


cdef class SleepingCpu(HandlerCpu):
    cdef wake_ups *wakes             # those of its world
    cdef uint64_t random[2]          # the states of what it draws from, by what for
    cdef double ratio                # the last one drawn for it
    cdef int64_t handling_until_ns   # a handler has it until then
    cdef int64_t left_ns             # when its last task left it
    cdef list others                 # without which it does not sleep

    # Whether a task has it, or wants it.
    cdef bint has_tasks(self) noexcept
    # Whether neither a handler nor a task has it or wants it.
    cdef bint is_idle(self, int64_t now_ns) noexcept
    # How long that has been so; 0: it is not.
    cdef int64_t idle_ns(self, int64_t now_ns) noexcept
    # What it takes to be woken is drawn from the run's `seed`; it is the CPU of that number.
    cdef int draw_from(self, seed, uint32_t number) except -1
    # From now on neither sleeps while the other works.
    cdef int sleep_with(self, SleepingCpu other) except -1
