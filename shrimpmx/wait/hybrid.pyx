"""The hybrids of the waiting paper, section 3.3: spin for a while, then fall back."""

from libc.stdint cimport int64_t

from shrimpmx.wait.strategy cimport (
    WAIT_TIMED_OUT, Strategy, WaitEnvironment, WaitResult, ready_function, spin_for,
)


cdef class SpinThen(Strategy):
    """Spins for `limit_ns`, then waits as `fallback` does.

    Use it when arrival delays are mixed or unknown. With a limit of T_block it never costs
    more than twice the best choice made in hindsight (waiting paper, 3.2, after Karlin et
    al.): below the limit it costs what `spin` costs, above it the limit plus the fallback.
    Spin-block runs with interrupts disabled while it spins; spin-notify keeps them enabled
    and pays for a notification with each message (section 5.1).
    """

    def __cinit__(self, limit_ns: int, Strategy fallback not None):
        if limit_ns < 0:
            raise ValueError(f"the spin limit must not be negative, but is {limit_ns} ns")
        self.limit_ns = limit_ns
        self.fallback = fallback
        self.name = f"spin-{fallback.name}"

    @property
    def sleeps(self):
        return self.fallback.sleeps

    @property
    def stands(self):
        return self.fallback.stands

    cdef int begin(self, WaitEnvironment *environment) except -1:
        return self.fallback.begin(environment)

    cdef int end(self, WaitEnvironment *environment) except -1:
        return self.fallback.end(environment)

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        cdef WaitResult result = spin_for(environment, ready, context, self.limit_ns, deadline_ns)
        if result != WAIT_TIMED_OUT:
            return result
        return self.fallback.persist(environment, ready, context, deadline_ns)
