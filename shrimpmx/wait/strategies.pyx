"""Waiting strategies: pure ones and hybrids of the waiting paper (section 3.3), and conditional.

Pure are spin, sched, block and notify; a hybrid spins first; conditional spins for longer while
messages come.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport pay
from shrimpmx.costs.rows cimport COST_reschedule_cost_ns
from shrimpmx.native.atomics cimport (
    exchange_u32, fetch_add_u32, full_fence, load_acquire_u32, load_relaxed_u32, store_relaxed_u32,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport (
    WAIT_SLOT_IDLE, WAIT_SLOT_NOTIFY, futex_wake, wait_slot_arm, wait_slot_disarm,
)
from shrimpmx.shared.host cimport Host
from shrimpmx.wait.strategy cimport (
    WAIT_READY, WAIT_STOPPED, WAIT_TIMED_OUT, InterruptGate, Strategy, WaitEnvironment, WaitResult,
    ready_function, spin_for, spin_until,
)


cdef WaitResult timed_out(WaitEnvironment *environment) noexcept nogil:
    environment.account.timeouts += 1
    return WAIT_TIMED_OUT


cdef inline bint is_over(WaitEnvironment *environment, int64_t deadline_ns) noexcept nogil:
    return deadline_ns != NEVER_NS and (<Host>environment.host).now_c() >= deadline_ns


# A run of the emulated host's scheduler.
cdef inline bint charge(WaitEnvironment *environment) noexcept nogil:
    return (<Host>environment.host).charge_kernel(
        pay(&(<Host>environment.host).meter, COST_reschedule_cost_ns))


cdef bint yield_cpu(WaitEnvironment *environment, int64_t deadline_ns) noexcept nogil:
    environment.account.yields += 1
    environment.account.system_calls += 1
    return (<Host>environment.host).yield_cpu(deadline_ns)


# Sleeps while the slot's word is `seen`: the kernel's scheduler runs to put the process to sleep,
# while the message may be on its way, and to bring it back. False: the host cannot.
cdef bint sleep_once(WaitEnvironment *environment, uint32_t seen,
                     int64_t deadline_ns) noexcept nogil:
    environment.account.blocks += 1
    environment.account.system_calls += 1
    return (charge(environment)
            and (<Host>environment.host).block(<uint32_t *><void *>&environment.slot.word, seen,
                                               deadline_ns)
            and charge(environment))


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
