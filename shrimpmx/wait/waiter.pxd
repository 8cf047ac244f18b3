"""A process's waiter: its strategy, its wait slot and its account."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.shared.control cimport Control
from shrimpmx.shared.host cimport Host
from shrimpmx.wait.strategy cimport (
    InterruptGate, Strategy, WaitEnvironment, WaitResult, ready_function,
)

# One watched flag: a 32-bit word that another process changes, and its value when last seen.
cdef struct FlagWatch:
    const void *address
    uint32_t seen

cdef struct WatchList:
    const FlagWatch *watches
    uint32_t count

# Whether any flag of a WatchList differs from its `seen` value: a ready_function.
cdef bint any_flag_changed(void *context) noexcept nogil


cdef class Waiter:
    cdef WaitEnvironment environment
    cdef readonly Control control
    cdef readonly Host host
    cdef readonly uint32_t runner_index
    cdef readonly Strategy strategy
    cdef bint begun

    # Before begin(): waits enable interrupts through `gate`, which outlives the waiter.
    cdef void use_gate(self, InterruptGate *gate) noexcept nogil
    # Around the waits of a thread that has company: others of the process may wait at the same
    # time, on the same wait slot.
    cdef void enter(self) noexcept nogil
    cdef void leave(self) noexcept nogil

    # Waits until ready(context), the deadline (NEVER_NS: none) or a stop.
    cdef WaitResult wait(self, ready_function ready, void *context,
                         int64_t deadline_ns) noexcept nogil
    # Waits until any of `count` flags differs from its `seen` value.
    cdef WaitResult wait_flags(self, const FlagWatch *watches, uint32_t count,
                               int64_t deadline_ns) noexcept nogil
    # The same two with another strategy for this one call, which admit() has let in.
    cdef WaitResult wait_with(self, Strategy strategy, ready_function ready, void *context,
                              int64_t deadline_ns) noexcept nogil
    cdef WaitResult wait_flags_with(self, Strategy strategy, const FlagWatch *watches,
                                    uint32_t count, int64_t deadline_ns) noexcept nogil
    # Raises InputError if `strategy` cannot be used for one call beside the waiter's own.
    cdef int admit(self, Strategy strategy) except -1
    # Raises what the user's code in `strategy` has raised, if it has.
    cdef int raise_failure(self, Strategy strategy) except -1
    cdef Strategy chosen(self, Strategy strategy)
