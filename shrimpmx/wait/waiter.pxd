"""A process's waiter: its strategy, its wait slot and its account."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.shared.control cimport Control
from shrimpmx.wait.strategy cimport Strategy, WaitEnvironment, WaitResult, ready_function

# One watched flag: a 32-bit word that another process changes, and its value when last seen.
cdef struct FlagWatch:
    const void *address
    uint32_t seen


cdef class Waiter:
    cdef WaitEnvironment environment
    cdef readonly Control control
    cdef readonly uint32_t runner_index
    cdef readonly Strategy strategy
    cdef bint begun

    # Around the waits of a thread that has company: others of the process may wait at the same
    # time, on the same wait slot. Raises InputError for `notify`, whose signals know no threads.
    cdef int enter(self) except -1
    cdef void leave(self) noexcept nogil

    # Waits until ready(context), the deadline (NEVER_NS: none) or a stop.
    cdef WaitResult wait(self, ready_function ready, void *context,
                         int64_t deadline_ns) noexcept nogil
    # Waits until any of `count` flags differs from its `seen` value.
    cdef WaitResult wait_flags(self, const FlagWatch *watches, uint32_t count,
                               int64_t deadline_ns) noexcept nogil
