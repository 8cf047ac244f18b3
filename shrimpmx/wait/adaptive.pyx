"""Spin-block that learns how long to spin (Karlin et al. 1991), and whether to spin at all.

A wait that finds its message after `delay` costs `delay` if it was found while spinning, and
`limit + T_block` if the process went to sleep after `limit` (waiting paper, 3.2). So the cost that
any other limit would have had can be told afterwards, and the limit that was the cheapest for the
last delays is a good guess for the next one. That is the cost to the process itself. What its
spinning costs others on its CPU comes back to it later, as the time that its partners take;
so it also compares how fast it gets on with and without.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.atomics cimport load_relaxed_u32
from shrimpmx.shared.host cimport Host
from shrimpmx.wait.strategies cimport block_until
from shrimpmx.wait.strategy cimport (
    WAIT_READY, WAIT_TIMED_OUT, Strategy, WaitEnvironment, WaitResult, ready_function, spin_for,
)

# The numbers are ours; Karlin et al. learn from the last 3 or 5.
HISTORY = ADAPTIVE_HISTORY
# The limits that compete, in T_block. With delays of two lengths none above 2 is the cheapest.
SHARES = (0.0, 0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)
# Waits of an epoch: so many that a time slice more or less that others had evens out.
EPOCH = ADAPTIVE_EPOCH
# A trial ends after so many waits if it is slower by this; and if what is preferred becomes slower
# by this, the other way is tried.
cdef uint64_t TRIAL_MIN = 16
cdef double HOPELESS = 1.3
# With a limit below T_block one wait in so many spins for T_block, to see the delays.
cdef uint32_t SAMPLE_WAITS = 8
# Epochs between two trials.
cdef uint32_t PAUSE_MIN = 8
cdef uint32_t PAUSE_MAX = 64
# Spinning has to be faster than blocking by this to be preferred: it uses more CPU time.
cdef double FASTER = 0.97


cdef int64_t cost_ns(int64_t delay_ns, int64_t limit_ns, int64_t t_block_ns) noexcept nogil:
    return delay_ns if delay_ns <= limit_ns else limit_ns + t_block_ns


cdef class AdaptiveSpin(Strategy):
    """Spins for a limit that it learns, then blocks; `t_block_ns` is what blocking costs.

    Use it when arrival delays, or the company on the CPU, are unknown or change. In turn:

    1. *Learn a limit.* Eight limits from 0 to 2 T_block compete. Each one's cost for the last 16
       delays is kept up to date, by subtracting the cost for the delay that is forgotten and adding
       that for the last one; the cheapest is the limit of the next wait, the shorter of two
       equals. Delays count only of waits that spin for T_block or more: a sleeper sees them too
       long. With a shorter limit one wait in eight does. Until 16 are known the limit is T_block,
       which costs at most twice the optimum whatever comes.
    2. *Compare.* Waits go in epochs of 64, and an epoch either spins up to that limit or blocks at
       once. The first one spins, the second one blocks; then the way is preferred by which the
       process came from wait to wait faster, spinning only if by 3 %. With others on its CPU a
       spin may keep its own partners from answering: then blocking wins, though each wait by itself
       would say otherwise.
    3. *Try again.* After eight epochs one tries the other way, and ends early if it is hopeless.
       While the other way is not better the pauses double, up to 64 epochs, 4096 waits. An epoch
       that is slower by a third than those before is followed by a trial at once.

    Not competitive in the worst case: delays that change just when they have been learned cost
    more than twice the optimum. Threads that wait together leave what is learned as it is.
    """

    sleeps = True

    def __cinit__(self, t_block_ns: int):
        cdef int index
        if t_block_ns < 0:
            raise ValueError(f"T_block must not be negative, but is {t_block_ns} ns")
        self.name = "adaptive"
        self.t_block_ns = t_block_ns
        self.limit_ns = t_block_ns
        self.spins = True
        self.pause = PAUSE_MIN
        for index in range(ADAPTIVE_LIMITS):
            self.limits[index] = int(SHARES[index] * t_block_ns)

    @classmethod
    def from_limit(cls, spin_ns):
        return cls(spin_ns)

    def learn(self, delay_ns: int) -> int:
        """Take in a delay (ns) as a wait does; returns the limit that is then the cheapest, ns."""
        self.observe(delay_ns)
        return self.limit_ns

    def pass_epoch(self, pace_ns: float) -> bool:
        """Take in an epoch of that pace (ns a wait); returns whether the next one spins."""
        self.end_epoch(pace_ns)
        return self.spins

    cdef WaitResult wait(self, WaitEnvironment *environment, ready_function ready,
                         void *context, int64_t deadline_ns) noexcept nogil:
        self.waits += 1
        return Strategy.wait(self, environment, ready, context, deadline_ns)

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        cdef int64_t start_ns = (<Host>environment.host).now_c()
        cdef int64_t limit_ns
        cdef WaitResult result
        cdef bint alone = load_relaxed_u32(&environment.threads) <= 1
        if alone:
            self.look_at_epoch(start_ns)
        else:
            self.epoch_waits = 0  # others' waits would count
        limit_ns = 0
        if self.spins:
            limit_ns = self.next_limit() if alone else self.limit_ns
        environment.account.limits_ns += limit_ns
        result = spin_for(environment, ready, context, limit_ns, deadline_ns)
        if result == WAIT_TIMED_OUT:
            result = block_until(environment, ready, context, deadline_ns, True)
        # After a shorter spin a sleep's own time would count as delay.
        if self.spins and alone and result == WAIT_READY and limit_ns >= self.t_block_ns:
            self.observe((<Host>environment.host).now_c() - start_ns)
        return result

    cdef int64_t next_limit(self) noexcept nogil:
        """The limit of the next wait of an epoch that spins."""
        if self.limit_ns >= self.t_block_ns:
            return self.limit_ns
        self.unseen = (self.unseen + 1) % SAMPLE_WAITS
        return self.limit_ns if self.unseen != 0 else self.t_block_ns

    cdef void observe(self, int64_t delay_ns) noexcept nogil:
        cdef int64_t forgotten_ns = self.delays[self.oldest]
        cdef bint full = self.known == ADAPTIVE_HISTORY
        cdef int64_t limit_ns
        cdef int index, best = 0
        for index in range(ADAPTIVE_LIMITS):
            limit_ns = self.limits[index]
            self.costs[index] += cost_ns(delay_ns, limit_ns, self.t_block_ns)
            if full:
                self.costs[index] -= cost_ns(forgotten_ns, limit_ns, self.t_block_ns)
            if self.costs[index] < self.costs[best]:
                best = index
        self.delays[self.oldest] = delay_ns
        self.oldest = (self.oldest + 1) % ADAPTIVE_HISTORY
        if not full:
            self.known += 1
        if self.known == ADAPTIVE_HISTORY:
            self.limit_ns = self.limits[best]

    cdef void look_at_epoch(self, int64_t now_ns) noexcept nogil:
        """A wait begins: it may be the first of an epoch."""
        cdef uint64_t passed = self.waits - self.epoch_waits
        cdef double pace_ns
        if (self.epoch_waits == 0 and self.spins and self.known < ADAPTIVE_HISTORY
                and self.t_block_ns > 0):
            return  # the first limit is learned first; the very first waits are for a start
        if self.epoch_waits != 0:
            if passed < TRIAL_MIN or (passed < ADAPTIVE_EPOCH and not self.on_trial):
                return
            pace_ns = <double>(now_ns - self.epoch_ns) / <double>passed
            if passed < ADAPTIVE_EPOCH and pace_ns < HOPELESS * self.paces[not self.spins]:
                return
            self.end_epoch(pace_ns)
        self.epoch_waits = self.waits
        self.epoch_ns = now_ns

    cdef void end_epoch(self, double pace_ns) noexcept nogil:
        """Choose the way of the next epoch."""
        cdef bint preferred = self.spins != self.on_trial
        cdef double before_ns = self.paces[self.spins]
        if self.on_trial or before_ns == 0:
            self.paces[self.spins] = pace_ns
        else:
            self.paces[self.spins] = (before_ns + pace_ns) / 2
        if self.on_trial:
            self.rest = self.pause
            self.pause = min(2 * self.pause, PAUSE_MAX)
            if (self.paces[1] < FASTER * self.paces[0]) != preferred:
                preferred = not preferred
                self.rest = self.pause = PAUSE_MIN
            self.on_trial = False
        elif self.rest <= 1 or (before_ns > 0 and pace_ns > HOPELESS * before_ns):
            self.on_trial = True
        else:
            self.rest -= 1
        self.spins = preferred != self.on_trial
        if self.spins and self.on_trial:
            self.forget()

    cdef void forget(self) noexcept nogil:
        """Learn the limit anew: one of 0 would try nothing."""
        cdef int index
        self.known = 0
        self.limit_ns = self.t_block_ns
        for index in range(ADAPTIVE_LIMITS):
            self.costs[index] = 0
