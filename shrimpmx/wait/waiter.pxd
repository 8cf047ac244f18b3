"""A process's waiter: its strategy, its wait slot and its account."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.trace cimport Trace, trace_ring
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport wait_account

# -- Waiting strategies: one interface for ranks and runners.

# Looks whether the awaited thing has come; true if so. Must not block.
ctypedef bint (*ready_function)(void *context) noexcept nogil

# The interrupts that a wait enables, where a NIC deposits data itself and interrupts only for
# pages that the receiver chose (waiting paper, 2.1 and section 4). The handler disables them all
# when it wakes the waiter.
ctypedef void (*gate_function)(void *context) noexcept nogil

cdef struct InterruptGate:
    gate_function enable     # before the last look of a wait that may sleep
    gate_function disable    # the wait ended without an interrupt
    gate_function always     # from begin() to end(): `notify`
    gate_function watch      # the same with the NIC's watchdog time: `watchdog`
    gate_function never      # end() of those two
    gate_function polled     # a look has found what was awaited: `watchdog`
    void *context

cdef struct WaitEnvironment:
    wait_slot *slot          # of this process
    InterruptGate *gate      # NULL: the handler wakes processes with armed slots
    wait_account *account    # of this process
    void *host               # the Host of this process
    const uint32_t *stop     # the run's stop word (control_header.stop)
    uint32_t threads         # of the process that wait now and share the slot; see Waiter.enter
    trace_ring *trace        # of this process; NULL: tracing is off

cdef enum WaitResult:
    WAIT_STOPPED = -1        # the run is being aborted (STOP_ABORT), or, for runners, ended
    WAIT_TIMED_OUT = 0
    WAIT_READY = 1


cdef class Strategy:
    cdef readonly str name
    cdef bint failed                 # `failure` is set: its waits end with WAIT_STOPPED
    cdef readonly object failure     # raised by a strategy written in Python
    # Before the first wait of a process / after the last: `notify` arms its signal here.
    cdef int begin(self, WaitEnvironment *environment) except -1
    cdef int end(self, WaitEnvironment *environment) except -1
    # Waits until ready(context), the deadline (NEVER_NS: none) or a stop (*stop != 0).
    cdef WaitResult wait(self, WaitEnvironment *environment, ready_function ready,
                         void *context, int64_t deadline_ns) noexcept nogil
    # The part of wait() that follows the first look, which found nothing: what a strategy
    # overrides. Hybrids call their fallback's, so that one wait is counted once.
    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil


# The first half of a hybrid: spins for `spin_ns`, if that is not 0, but not beyond the deadline.
cdef WaitResult spin_for(WaitEnvironment *environment, ready_function ready, void *context,
                         int64_t spin_ns, int64_t deadline_ns) noexcept nogil
# Spins until ready, `limit_ns` or a stop; keeps the account's spin_ns and while_spinning.
cdef WaitResult spin_until(WaitEnvironment *environment, ready_function ready,
                           void *context, int64_t limit_ns) noexcept nogil


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
    cdef Trace tracing    # keeps the ring of `environment`

    # Records from now on each sleep, in the ring of agent `number`.
    cdef int use_trace(self, Trace trace, uint32_t number) except -1
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
