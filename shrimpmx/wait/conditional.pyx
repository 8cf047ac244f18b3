"""Conditional spinning of implicit coscheduling (Arpaci-Dusseau et al. 1998)."""

from libc.stdint cimport int64_t

from shrimpmx.wait.pure cimport block_until
from shrimpmx.wait.strategy cimport (
    WAIT_READY, WAIT_TIMED_OUT, Strategy, WaitEnvironment, WaitResult, ready_function, spin_for,
)

# The published method has no constants that we know of; these are ours. Each message found while
# spinning adds one baseline to the limit, up to so many baselines in all.
cdef int64_t BASELINES_MAX = 5


cdef class Conditional(Strategy):
    """Spin-block that spins longer as long as its messages come while it spins.

    Use it where processes that talk to each other share their CPUs with others. The kernel's
    schedulers do not know which processes should run at the same time; each concludes it from
    what comes. A wait spins for a `baseline_ns`, about a round trip and a context switch at the far
    side: a partner that does not answer within that is not running, and the process gives up its
    CPU. A message that does come shows that its sender runs now, so the process had better stay:
    the next wait may spin one baseline longer, up to 5 in all. A wait that had to block starts over
    with the baseline.
    """

    cdef readonly int64_t baseline_ns
    cdef readonly int64_t limit_ns   # of the next wait

    sleeps = True

    def __cinit__(self, baseline_ns: int):
        if baseline_ns < 0:
            raise ValueError(f"the baseline must not be negative, but is {baseline_ns} ns")
        self.name = "conditional"
        self.baseline_ns = baseline_ns
        self.limit_ns = baseline_ns

    @classmethod
    def from_limit(cls, spin_ns):
        return cls(spin_ns)

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        cdef WaitResult result
        environment.account.limits_ns += self.limit_ns
        result = spin_for(environment, ready, context, self.limit_ns, deadline_ns)
        if result == WAIT_READY:
            self.limit_ns = min(self.limit_ns + self.baseline_ns, BASELINES_MAX * self.baseline_ns)
        if result != WAIT_TIMED_OUT:
            return result
        self.limit_ns = self.baseline_ns
        return block_until(environment, ready, context, deadline_ns, True)
