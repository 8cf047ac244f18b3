"""Waiting strategies: one interface for ranks and runners."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.futex cimport wait_slot
from shrimpmx.shared.layout cimport wait_account

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
