"""The compiled loop that drives the agents of one process, and an agent written in Python.

A pass steps every agent once, with one reading of the clock. When a pass finds nothing to
do, the process waits with its waiting strategy, which looks by making another pass, until
there is work, an agent's own time comes, or the run stops.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.costs.meter cimport cost_meter, pay, pay_copy
from shrimpmx.costs.rows cimport COST_nic_frame_ns, COST_nic_step_ns
from shrimpmx.native.atomics cimport load_relaxed_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport (
    COUNTER_rx_bytes, COUNTER_rx_packets, COUNTER_tx_bytes, COUNTER_tx_packets,
)
from shrimpmx.wait.waiter cimport Waiter, spin_until

from shrimpmx.cluster.spec import EARLY_WAKE_NS


cdef extern from "<sched.h>" nogil:
    struct sched_param:
        int sched_priority
    int sched_setscheduler(int pid, int policy, const sched_param *parameters) noexcept
    enum:
        SCHED_FIFO
        SCHED_OTHER

# A sleep shorter than this is not worth its two context switches (ours).
cdef int64_t SHORTEST_SLEEP_NS = 5_000
# A process that preempts others and whose next work is always near, a NIC while its link is
# busy, would never leave its CPU to them. Hardware takes no CPU time: after this long
# awake it naps, sooner if a handler waits that it has interrupted itself. A nap takes its own
# time and that of a late timer, enough for a handler to send a block of a large message (ours).
cdef int64_t AWAKE_MAX_NS = 200_000
cdef int64_t AWAKE_SHARED_CPU_NS = 20_000
cdef int64_t NAP_NS = 25_000
# A handler whose host is overloaded works without an end, which is its right; but real-time
# priority would give it the CPU for good where the kernel does not interfere. So it rests for a
# twentieth of the time, which Linux, too, keeps free of real-time processes by default; and far
# sooner than its RLIMIT_RTTIME ends a process that never sleeps (ours).
cdef int64_t WORK_MAX_NS = 50_000_000
cdef int64_t WORK_PER_REST = 19


# Steps every agent; returns how much they did.
cdef int one_pass(RunnerState *state) noexcept nogil:
    cdef int64_t now_ns = (<Host>state.host).now_c()
    cdef int64_t due_ns = NEVER_NS
    cdef int done = 0
    cdef uint32_t index
    state.keeps_waiting = False
    state.wants_demotion = False
    for index in range(state.agents_count):
        done += step_agent(state, state.agents[index], now_ns, &due_ns)
    state.due_ns = due_ns
    if done > 0 and state.pass_ns > 0:
        (<Host>state.host).charge(pay_nics(state) if state.are_nics else state.pass_ns)
    return done


# What a pass of NICs takes, and their frames that were not paid for yet, which they copy.
cdef int64_t pay_nics(RunnerState *state) noexcept nogil:
    cdef cost_meter *meter = &(<Host>state.host).meter
    cdef uint64_t frames = 0, bytes = 0
    cdef const uint64_t *counters
    cdef int64_t cost_ns = max(
        state.pass_ns, pay(meter, COST_nic_step_ns, state.agents_count))
    cdef uint32_t index
    if (<Host>state.host).price_ns(COST_nic_frame_ns) == 0:
        return cost_ns
    for index in range(state.agents_count):
        counters = (<Agent>state.agents[index]).counters
        if counters != NULL:
            frames += counters[COUNTER_tx_packets] + counters[COUNTER_rx_packets]
            bytes += counters[COUNTER_tx_bytes] + counters[COUNTER_rx_bytes]
    cost_ns += pay(meter, COST_nic_frame_ns, <int64_t>(frames - state.frames))
    cost_ns += pay_copy(meter, <uint32_t>(bytes - state.bytes))
    state.frames, state.bytes = frames, bytes
    return cost_ns


cdef inline int step_agent(RunnerState *state, void *pointer, int64_t now_ns,
                           int64_t *due_ns) noexcept nogil:
    cdef int done = (<Agent>pointer).step(now_ns)
    if (<Agent>pointer).next_due_ns < due_ns[0]:
        due_ns[0] = (<Agent>pointer).next_due_ns
    if (<Agent>pointer).busy_until_ns > state.busy_until_ns:
        state.busy_until_ns = (<Agent>pointer).busy_until_ns
    state.keeps_waiting |= (<Agent>pointer).keeps_waiting
    state.wants_demotion |= (<Agent>pointer).wants_demotion
    if <void *>(<Agent>pointer).failure != <void *>None:
        state.failed = True
    return done


# The look of a waiting runner: a pass. It also ends the wait when the pass brought the due
# time forward, so that the next wait has the right deadline.
cdef bint pass_found_work(void *context) noexcept nogil:
    cdef RunnerState *state = <RunnerState *>context
    return one_pass(state) > 0 or state.failed or state.due_ns < state.awaited_ns


cdef class Runner:
    """Drives `agents` in the calling process until the run stops or one of them fails.

    `waiter`: how the process waits, and its record; `early_wake_ns`: how long before a due
    time a sleep ends (the rest is spun, since timers are late); `realtime`: the FIFO priority
    that the process holds, 0 if none, to return to after a demotion. In a simulation an agent's own
    code takes no time: `pass_ns` is what a pass takes at least. Where all `are_nics`, the process
    pays for their steps and frames by its host's prices.
    """

    def __cinit__(self, list agents not None, Waiter waiter not None,
                  early_wake_ns: int = EARLY_WAKE_NS, realtime: int = 0, pass_ns: int = 0,
                  are_nics: bool = False):
        self.state.agents = <void **>calloc(max(1, len(agents)), sizeof(void *))
        if self.state.agents == NULL:
            raise MemoryError
        self.agents = list(agents)
        self.waiter = waiter
        self.early_wake_ns = early_wake_ns
        self.realtime = realtime
        self.state.pass_ns, self.state.are_nics = pass_ns, are_nics
        self.state.host = <void *>waiter.host
        for agent in self.agents:
            self._add(agent)

    def __dealloc__(self):
        free(self.state.agents)

    cdef int _add(self, Agent agent) except -1:
        self.state.agents[self.state.agents_count] = <void *>agent
        self.state.agents_count += 1
        return 0

    def run(self) -> None:
        """Drive the agents; raises what an agent's step raised, if one did."""
        with self.waiter:
            with nogil:
                self.drive()
            self.waiter.host.check()
        for agent in self.agents:
            if agent.failure is not None:
                raise agent.failure

    cdef void drive(self) noexcept nogil:
        self.awake_ns = self.waiter.host.now_c()
        while (not self.state.failed and not self.waiter.strategy.failed
               and not self.waiter.host.failed
               and load_relaxed_u32(self.waiter.environment.stop) == 0):
            if one_pass(&self.state) == 0:
                self.idle()
            if self.realtime > 0:
                self.heed_demotion()
                self.rest()

    cdef void idle(self) noexcept nogil:
        cdef int64_t left_ns
        cdef RunnerState *state = &self.state
        state.awaited_ns = state.due_ns
        # Looked already: the pass before was the first look of this wait.
        self.waiter.environment.account.waits += 1
        if state.due_ns == NEVER_NS:
            self.waiter.strategy.persist(
                &self.waiter.environment, pass_found_work, state, NEVER_NS
            )
            return
        left_ns = state.due_ns - self.waiter.host.now_c()
        if left_ns <= 0:
            return
        if state.due_ns <= state.busy_until_ns:
            self.work()
        elif left_ns <= self.early_wake_ns + SHORTEST_SLEEP_NS:
            if self.realtime > 0 and self.awake_too_long():
                self.nap(NAP_NS)
                return
            spin_until(&self.waiter.environment, pass_found_work, state, state.due_ns)
        else:
            self.waiter.strategy.persist(
                &self.waiter.environment, pass_found_work, state,
                state.due_ns - self.early_wake_ns,
            )

    cdef void work(self) noexcept nogil:
        """Take the CPU for the time that an agent's host needs, as its own code would; for a while:
        the caller comes again.
        """
        cdef int64_t until_ns = self.waiter.host.now_c() + WORK_MAX_NS
        if self.realtime > 0:
            until_ns -= self.awake_for()
        spin_until(&self.waiter.environment, pass_found_work, &self.state,
                   min(self.state.busy_until_ns, until_ns))

    cdef void rest(self) noexcept nogil:
        """Leave the CPU to others in between, however much there is to do.

        Work comes in pieces of WORK_MAX_NS; in much longer times the whole run stood still.
        """
        cdef int64_t awake_ns = self.awake_for()
        if awake_ns >= WORK_MAX_NS and not self.demoted:
            self.nap(min(awake_ns, 2 * WORK_MAX_NS) // WORK_PER_REST + 1)

    cdef bint awake_too_long(self) noexcept nogil:
        return self.awake_for() > (
            AWAKE_SHARED_CPU_NS if self.state.keeps_waiting else AWAKE_MAX_NS)

    cdef int64_t awake_for(self) noexcept nogil:
        """ns since it was first seen awake after its last sleep, or has begun."""
        cdef int64_t now_ns = self.waiter.host.now_c()
        if self.waiter.environment.account.blocks != self.blocks_seen:
            self.blocks_seen = self.waiter.environment.account.blocks
            self.awake_ns = now_ns
        return now_ns - self.awake_ns

    cdef void nap(self, int64_t duration_ns) noexcept nogil:
        self.waiter.environment.account.blocks += 1
        self.waiter.environment.account.system_calls += 1
        self.waiter.host.sleep_c(duration_ns)
        self.awake_for()  # from now on

    cdef void heed_demotion(self) noexcept nogil:
        """A handler that never catches up gives way to the ranks, as Linux moves to ksoftirqd."""
        cdef bint wanted = self.state.wants_demotion
        cdef sched_param parameters
        # A simulated one keeps its priority.
        if wanted == self.demoted or self.state.pass_ns > 0:
            return
        self.demoted = wanted
        parameters.sched_priority = 0 if wanted else self.realtime
        # Without the right to go back up the handler stays where it is: slow, never wrong.
        sched_setscheduler(0, SCHED_OTHER if wanted else SCHED_FIFO, &parameters)


# -- An agent written in Python: the door by which tests drive a runner step by step.

cdef class PythonAgent(Agent):
    """Steps by calling `function(now_ns)`, which takes the GIL.

    It returns how much it did and when it next wants to run (ns, None: on a wake-up). Its
    first exception is the agent's failure; after that it is not called any more.
    """

    cdef object function

    def __init__(self, name, function not None):
        self.name = name
        self.function = function

    cdef int step(self, int64_t now_ns) noexcept nogil:
        with gil:
            if self.failure is not None:
                return 0
            try:
                done, due_ns = self.function(now_ns)
                self.next_due_ns = NEVER_NS if due_ns is None else <int64_t>due_ns
                return done
            except BaseException as error:
                self.failure = error
                return 0
