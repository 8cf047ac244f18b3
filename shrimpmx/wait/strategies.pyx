"""Waiting strategies: pure ones and hybrids, those that adapt, and one written in Python."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport pay
from shrimpmx.costs.rows cimport COST_enable_cost_ns, COST_reschedule_cost_ns, cost_row
from shrimpmx.native.atomics cimport (
    exchange_u32, fetch_add_u32, full_fence, load_acquire_u32, load_relaxed_u32, store_relaxed_u32,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport (
    WAIT_SLOT_IDLE, WAIT_SLOT_NOTIFY, futex_wake, wait_slot_arm, wait_slot_disarm,
)
from shrimpmx.native.trace cimport TRACE_sleep_begin, TRACE_sleep_end, trace_record
from shrimpmx.shared.host cimport Host
from shrimpmx.wait.waiter cimport (
    WAIT_READY, WAIT_STOPPED, WAIT_TIMED_OUT, InterruptGate, Strategy, WaitEnvironment, WaitResult,
    ready_function, spin_for, spin_until,
)

from shrimpmx.errors import InputError
from shrimpmx.wait.waiter import RESULTS


# -- Waiting strategies: pure ones and hybrids of the waiting paper (section 3.3), and conditional.
#
# Pure are spin, sched, block and notify; a hybrid spins first; conditional spins for longer while
# messages come.

cdef WaitResult timed_out(WaitEnvironment *environment) noexcept nogil:
    environment.account.timeouts += 1
    return WAIT_TIMED_OUT


cdef inline bint is_over(WaitEnvironment *environment, int64_t deadline_ns) noexcept nogil:
    return deadline_ns != NEVER_NS and (<Host>environment.host).now_c() >= deadline_ns


cdef inline bint charge(WaitEnvironment *environment, cost_row which) noexcept nogil:
    return (<Host>environment.host).charge_kernel(
        pay(&(<Host>environment.host).meter, which))


cdef bint yield_cpu(WaitEnvironment *environment, int64_t deadline_ns) noexcept nogil:
    environment.account.yields += 1
    environment.account.system_calls += 1
    return (<Host>environment.host).yield_cpu(deadline_ns)


cdef inline void trace_sleep(WaitEnvironment *environment, uint32_t kind) noexcept nogil:
    if environment.trace != NULL:
        trace_record(environment.trace, (<Host>environment.host).now_c(), kind, 0, 0)


# Sleeps while the slot's word is `seen`: the kernel's scheduler runs to put the process to sleep,
# while the message may be on its way, and to bring it back. False: the host cannot.
cdef bint sleep_once(WaitEnvironment *environment, uint32_t seen,
                     int64_t deadline_ns) noexcept nogil:
    cdef bint slept
    environment.account.blocks += 1
    environment.account.system_calls += 1
    trace_sleep(environment, TRACE_sleep_begin)
    slept = (charge(environment, COST_reschedule_cost_ns)
             and (<Host>environment.host).block(<uint32_t *><void *>&environment.slot.word, seen,
                                                deadline_ns)
             and charge(environment, COST_reschedule_cost_ns))
    trace_sleep(environment, TRACE_sleep_end)
    return slept


cdef class Spin(Strategy):
    """Polls without a pause until the message is there.

    Use it when the process has its CPU to itself and latency is all that counts. It makes
    no system call and takes no interrupt, and costs the CPU for the whole arrival delay;
    with company on the CPU, the sender may wait for the end of the spinner's
    time slice (waiting paper, 5.1: the worst of all with five pairs).
    """

    def __cinit__(self):
        self.name = "spin"

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        cdef WaitResult result = spin_until(environment, ready, context, deadline_ns)
        return timed_out(environment) if result == WAIT_TIMED_OUT else result


cdef class Sched(Strategy):
    """Polls, and yields the CPU after each look.

    Use it where processes share CPUs and nothing can wake them. Each look costs a system
    call and a run of the kernel's scheduler (waiting paper, Figure 1: six or more for a
    message); beside a process that computes, each yield may cost a whole time slice.
    """

    def __cinit__(self):
        self.name = "sched"

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        while True:
            if load_relaxed_u32(environment.stop) != 0:
                return WAIT_STOPPED
            if is_over(environment, deadline_ns):
                return timed_out(environment)
            if not yield_cpu(environment, deadline_ns):
                return WAIT_STOPPED
            if ready(context):
                return WAIT_READY


cdef void stop_sleeping(WaitEnvironment *environment, InterruptGate *gate) noexcept nogil:
    """At the end of a wait: disables the interrupts of `gate`, unless it is NULL, disarms the
    slot, and wakes the threads that it disarms with it.

    All threads of a process sleep on one wait slot. A wake-up wakes them all (futex.h), and
    those whose thing has not come arm the slot again, look again and sleep on. A thread that
    ends its wait may disarm after another one armed, whether it then leaves or comes back for
    what it has not found: until all sleepers have armed again, nothing would wake them. So
    the thread that undoes an arming wakes them all, as a waker does. It misses none: a thread whose
    arming the exchange undoes was counted before it armed (L1, in Waiter.enter), the count is
    read after the exchange (L2), and a thread that arms later stays armed. The interrupts go
    first, so that a thread that arms later enables them later, too.
    """
    if gate != NULL:
        gate.disable(gate.context)
    if load_relaxed_u32(&environment.threads) == 0:  # a process whose only thread waits
        wait_slot_disarm(environment.slot)
        return
    if exchange_u32(<void *>&environment.slot.armed, WAIT_SLOT_IDLE) == WAIT_SLOT_IDLE:
        return  # a waker disarmed it and wakes all, and no thread has armed it since
    if load_acquire_u32(&environment.threads) > 1:  # L2
        fetch_add_u32(<void *>&environment.slot.word, 1)
        environment.account.system_calls += 1
        futex_wake(<uint32_t *><void *>&environment.slot.word, 1 << 30)


cdef WaitResult block_until(WaitEnvironment *environment, ready_function ready, void *context,
                            int64_t deadline_ns, bint enables) noexcept nogil:
    cdef InterruptGate *gate = environment.gate if enables else NULL
    cdef InterruptGate *enabled
    cdef uint32_t seen
    while True:
        seen = wait_slot_arm(environment.slot)  # W2: armed before the looks below
        if enables:
            environment.account.interrupts_enabled += 1
            if gate != NULL:
                gate.enable(gate.context)  # V2: enabled before the looks below
                if not charge(environment, COST_enable_cost_ns):
                    stop_sleeping(environment, gate)
                    return WAIT_STOPPED
        if ready(context):
            stop_sleeping(environment, gate)
            environment.account.races += 1
            return WAIT_READY
        # The stopper stores the stop word, then bumps slot.word: either it is seen here
        # or the sleep below finds the word changed.
        if load_acquire_u32(environment.stop) != 0:
            stop_sleeping(environment, gate)
            return WAIT_STOPPED
        if is_over(environment, deadline_ns):
            stop_sleeping(environment, gate)
            return timed_out(environment)
        # Woken for another thread it arms again at once, with no disarming in between.
        if not sleep_once(environment, seen, deadline_ns):
            stop_sleeping(environment, gate)
            return WAIT_STOPPED
        if ready(context):
            # The handler disables the interrupts, then disarms the slot: armed still, it was none.
            enabled = gate if load_acquire_u32(&environment.slot.armed) != WAIT_SLOT_IDLE else NULL
            stop_sleeping(environment, enabled)
            return WAIT_READY


cdef class Block(Strategy):
    """Enables the interrupt, looks once more, then sleeps until the handler wakes it.

    Use it when arrival delays are long or others need the CPU. Each wait costs T_block
    whatever the delay: one system call, two context switches, the interrupt and the
    wake-up (waiting paper, 3.2 and section 4). The waker disarms the slot, so one sleep
    takes one wake-up.
    """

    sleeps = True

    def __cinit__(self):
        self.name = "block"

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        return block_until(environment, ready, context, deadline_ns, True)


cdef class Notify(Strategy):
    """Sleeps until a signal handler has run.

    Use it to see what user-level notifications cost (waiting paper, 3.1): each message
    that arrives while the strategy is in force sends a signal and runs a handler, also
    one that comes while the process spins (5.1), so it costs `block` plus the delivery of
    a signal. The handler increments the slot's word, which the sleep compares: with the
    signal let in all the time, a wait takes one system call and loses no notification. It then
    wakes all sleepers, since the kernel runs it on any thread of the process.
    """

    sleeps = True
    stands = True

    def __cinit__(self):
        self.name = "notify"

    cdef int begin(self, WaitEnvironment *environment) except -1:
        self.runs_before = (<Host>environment.host).notifications()
        (<Host>environment.host).take_notifications(environment.slot)
        environment.account.interrupts_enabled += 1
        store_relaxed_u32(&environment.slot.armed, WAIT_SLOT_NOTIFY)
        if environment.gate != NULL:
            environment.gate.always(environment.gate.context)
        full_fence()  # W2, V2: armed and enabled before any look at data; pairs with W1, V1
        return 0

    cdef void count(self, WaitEnvironment *environment) noexcept nogil:
        cdef uint64_t runs = (<Host>environment.host).notifications() - self.runs_before
        (<Host>environment.host).pay_notifications(runs - environment.account.notifications)
        environment.account.notifications = runs

    cdef int end(self, WaitEnvironment *environment) except -1:
        if environment.gate != NULL:
            environment.gate.never(environment.gate.context)
        wait_slot_disarm(environment.slot)
        # A waker that saw the slot armed may still be about to signal, so the handler stays
        # until the process ends: without it the signal would end the process. The slot may go.
        (<Host>environment.host).leave_notifications()
        self.count(environment)
        return 0

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        cdef WaitResult result = sleep_until_notified(environment, ready, context, deadline_ns)
        self.count(environment)
        return result


cdef WaitResult sleep_until_notified(WaitEnvironment *environment, ready_function ready,
                                     void *context, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t seen
    cdef bint first = True
    while True:
        seen = load_acquire_u32(&environment.slot.word)  # before the looks below
        if ready(context):
            if first:
                environment.account.races += 1
            return WAIT_READY
        if load_acquire_u32(environment.stop) != 0:
            return WAIT_STOPPED
        if is_over(environment, deadline_ns):
            return timed_out(environment)
        if not sleep_once(environment, seen, deadline_ns):
            return WAIT_STOPPED
        first = False


# -- The hybrids of the waiting paper, section 3.3: spin for a while, then fall back.

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


# -- Conditional spinning of implicit coscheduling (Arpaci-Dusseau et al. 1998).

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


# -- The polling watchdog (Maquelin et al. 1996): a NIC that interrupts by itself if not polled.

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


# -- Spin-block that learns how long to spin (Karlin et al. 1991), and whether to spin at all.
#
# A wait that finds its message after `delay` costs `delay` if it was found while spinning, and
# `limit + T_block` if the process went to sleep after `limit` (waiting paper, 3.2). So the cost
# that any other limit would have had can be told afterwards, and the limit that was the cheapest
# for the last delays is a good guess for the next one. That is the cost to the process itself. What
# its spinning costs others on its CPU comes back to it later, as the time that its partners take;
# so it also compares how fast it gets on with and without.

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


# -- Adapter from waits to a waiting strategy written in Python.
#
# A decision takes the GIL, the looks between two decisions do not. To sleep is to block as `block`
# does, with its order of arming, looking and sleeping, so no wake-up is lost. The first exception
# is kept in `failure`; after it the user's code is not called any more and waits end as if the run
# were stopped, and the waiter raises it.

cdef extern from "Python.h":
    int Py_IsInitialized() nogil
from shrimpmx.wait.waiting_strategy import WaitingStrategy


cdef class PythonStrategy(Strategy):
    """Makes a `shrimpmx.wait.waiting_strategy.WaitingStrategy` a strategy of waiters."""

    sleeps = True

    def __init__(self, strategy not None):
        self.strategy = strategy
        self.name = type(strategy).__name__
        self.learns = type(strategy).ended is not WaitingStrategy.ended

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        cdef int64_t start_ns = (<Host>environment.host).now_c()
        cdef WaitResult result = self.follow(environment, ready, context, start_ns, deadline_ns)
        if self.learns and Py_IsInitialized():
            self.tell_end((<Host>environment.host).now_c() - start_ns, result)
        return WAIT_STOPPED if self.failed else result

    cdef WaitResult follow(self, WaitEnvironment *environment, ready_function ready,
                           void *context, int64_t start_ns, int64_t deadline_ns) noexcept nogil:
        """One decision after another."""
        cdef int64_t now_ns = start_ns, decision
        cdef WaitResult result
        while load_relaxed_u32(environment.stop) == 0:
            if now_ns >= deadline_ns:
                environment.account.timeouts += 1
                return WAIT_TIMED_OUT
            # mpi4py calls MPI_Finalize when its interpreter is gone, and decide() takes the GIL.
            decision = self.decide(now_ns - start_ns) if Py_IsInitialized() else DECIDED_SLEEP
            if decision == DECIDED_SLEEP:
                return block_until(environment, ready, context, deadline_ns, True)
            if decision == DECIDED_STOP:
                return WAIT_STOPPED
            if decision == DECIDED_YIELD:
                if not yield_cpu(environment, now_ns):
                    return WAIT_STOPPED
                if ready(context):
                    return WAIT_READY
            else:
                result = spin_for(environment, ready, context, decision, deadline_ns)
                if result != WAIT_TIMED_OUT:
                    return result
            now_ns = (<Host>environment.host).now_c()
        return WAIT_STOPPED

    cdef int64_t decide(self, int64_t waited_ns) noexcept nogil:
        cdef int64_t decision = DECIDED_STOP
        if self.failed:
            return DECIDED_STOP
        with gil:
            try:
                decision = self.decision_of(self.strategy.idle(waited_ns))
            except BaseException as error:
                self.failure = error
                self.failed = True
        return decision

    cdef int64_t decision_of(self, object answer) except *:
        if answer == "sleep":
            return DECIDED_SLEEP
        if answer == "yield":
            return DECIDED_YIELD
        if isinstance(answer, int) and answer > 0 and answer is not True:
            return min(answer, NEVER_NS // 2)
        raise InputError(
            f"{self.name}.idle returned {answer!r}; it must return 'yield', 'sleep' or the "
            "time to spin in ns, a whole number from 1 on"
        )

    cdef void tell_end(self, int64_t waited_ns, WaitResult result) noexcept nogil:
        if self.failed:
            return
        with gil:
            try:
                self.strategy.ended(waited_ns, RESULTS[result])
            except BaseException as error:
                self.failure = error
                self.failed = True
