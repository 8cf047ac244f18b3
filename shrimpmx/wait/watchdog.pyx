"""The polling watchdog (Maquelin et al. 1996): a NIC that interrupts by itself if not polled."""

from libc.stdint cimport int64_t

from shrimpmx.native.atomics cimport full_fence
from shrimpmx.wait.strategies cimport block_until
from shrimpmx.wait.strategy cimport (
    WAIT_READY, WAIT_TIMED_OUT, Strategy, WaitEnvironment, WaitResult, ready_function, spin_for,
)


cdef class WatchdogWait(Strategy):
    """Spins for `limit_ns`, then sleeps; the NIC interrupts for what was not polled in time.

    Use it to see what changing the device's state for each wait costs: here no wait does. The
    interrupts stay enabled from begin() to end(), with a delay (`nic.watchdog_ns`), and each look
    that finds something tells the NIC that it was polled. So a message that comes to a spinning
    process causes no interrupt, and one that comes to a sleeping process does so by the delay too
    late. A sleeper arms its wait slot, looks, and sleeps: what the look missed raises an interrupt.

    Where the handler itself wakes a process with an armed slot there is no such timer to leave on,
    and this is spin-block.
    """

    cdef readonly int64_t limit_ns

    sleeps = True
    stands = True

    def __cinit__(self, limit_ns: int):
        if limit_ns < 0:
            raise ValueError(f"the spin limit must not be negative, but is {limit_ns} ns")
        self.name = "watchdog"
        self.limit_ns = limit_ns

    @classmethod
    def from_limit(cls, spin_ns):
        return cls(spin_ns)

    cdef int begin(self, WaitEnvironment *environment) except -1:
        if environment.gate != NULL:
            environment.account.interrupts_enabled += 1
            environment.gate.watch(environment.gate.context)
            full_fence()  # V2: enabled before any look at data; pairs with V1
        return 0

    cdef int end(self, WaitEnvironment *environment) except -1:
        if environment.gate != NULL:
            environment.gate.never(environment.gate.context)
        return 0

    cdef WaitResult wait(self, WaitEnvironment *environment, ready_function ready,
                         void *context, int64_t deadline_ns) noexcept nogil:
        cdef WaitResult result = Strategy.wait(self, environment, ready, context, deadline_ns)
        if result == WAIT_READY and environment.gate != NULL:
            environment.gate.polled(environment.gate.context)
        return result

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        cdef WaitResult result = spin_for(environment, ready, context, self.limit_ns, deadline_ns)
        if result != WAIT_TIMED_OUT:
            return result
        return block_until(environment, ready, context, deadline_ns, environment.gate == NULL)
