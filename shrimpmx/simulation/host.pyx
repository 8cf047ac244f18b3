"""The host of a rank whose CPU time a simulation hands out."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, pay
from shrimpmx.costs.rows cimport COST_handler_cost_ns, COST_signal_ns
from shrimpmx.native.atomics cimport fetch_add_u32, load_acquire_u32, load_relaxed_u64
from shrimpmx.native.clock cimport CLOCK_KIND_VIRTUAL
from shrimpmx.native.futex cimport WAIT_SLOT_BLOCK, WAIT_SLOT_WORD, wait_slot
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport COUNTER_loops, COUNTER_progress_calls, COUNTERS_MAX, STOP_NO

from shrimpmx.errors import InputError

# So many notifications at a time are charged (ours): no more can come between two turns of a task.
cdef uint64_t NOTIFICATIONS_MOST = 1 << 20


cdef class CpuUser:
    """Base of what has a SimulatedHost; the operations of this one take no time."""

    cpdef int compute(self, int64_t duration_ns) except -1:
        return 0

    cpdef int poll(self, int64_t until_ns) except -1:
        return 0

    cpdef int64_t offer(self, int64_t until_ns) except -1:
        return 0

    cpdef int sleep(self, int64_t until_ns) except -1:
        return 0


@cython.final
cdef class SimulatedHost(Host):
    """Each operation lets the world go on until the task's CPU has done it.

    What the world raises meanwhile, the call raises that waited.
    """

    def __init__(self, Control control not None, CpuUser task not None, Prices prices=None):
        if control.clock().kind != CLOCK_KIND_VIRTUAL:
            raise InputError("a SimulatedHost needs a virtual clock")
        Host.__init__(self, control, prices)
        self.task = task
        self.moves = True
        self.runs_python = True

    def usage(self) -> dict[str, int]:
        """Virtual CPU time, and how often the CPU went to another task."""
        used = Host.usage(self)
        used["task_clock_ns"] = self.task.used_ns
        used["system_ns"] = min(self.task.kernel_ns, self.task.used_ns)
        used["user_ns"] = self.task.used_ns - used["system_ns"]
        used["voluntary_switches"] = self.task.sleeps
        used["involuntary_switches"] = self.task.preemptions
        return used

    def count_in(self, uint32_t agent, uint32_t runner) -> None:
        """The task counts what it does, and how it waits, in the records of those numbers."""
        self.record = self.control.agent(agent)
        self.runner = self.control.runner(runner)

    def burn_round(self, int64_t duration_ns) -> None:
        """Burn CPU time as a hog does, which counts its rounds."""
        self.record.counters[COUNTER_loops] += 1
        self.burn(duration_ns)

    def makes_passes(self, pass_ns: int) -> None:
        """The task drives agents: a look is a pass of them, which takes so long. A pass acts first,
        and its time is charged then; what it wakes goes on behind that time.
        """
        self.pass_ns = pass_ns

    def run_on(self, cpus) -> None:
        """The first of them: a task is not moved by the scheduler."""
        (<object>self.task).move(cpus[0])

    cdef uint64_t deeds(self) noexcept nogil:
        cdef uint64_t total = 0
        cdef uint32_t index
        if self.record != NULL:
            for index in range(<uint32_t>COUNTERS_MAX):
                if index != COUNTER_progress_calls and index != COUNTER_loops:
                    total += <uint64_t>self.record.counters[index]
        return total

    cdef bint may_see_news(self) noexcept nogil:
        return (self.awaited == NULL or self.control.header.stop != STOP_NO
                or (self.awaited.unexpected_next + self.awaited.expected_next
                    != self.events_taken))

    cdef bint is_roused(self) noexcept nogil:
        return self.word != NULL and load_acquire_u32(self.word) != self.seen

    cdef int take_notifications(self, wait_slot *slot) except -1:
        # The slot has no signal: nothing but the count of notifications tells of one.
        self.slot = slot
        self.handled = load_relaxed_u64(&slot.notifications)
        return 0

    cdef uint64_t notifications(self) noexcept nogil:
        return self.handler_runs

    cdef bint is_notified(self) noexcept nogil:
        return self.slot != NULL and load_relaxed_u64(&self.slot.notifications) != self.handled

    cdef int64_t handle_notifications(self) noexcept nogil:
        cdef uint64_t count
        if not self.is_notified():
            return -1
        count = load_relaxed_u64(&self.slot.notifications) - self.handled
        self.handled += count
        self.handler_runs += count
        fetch_add_u32(<void *>&self.slot.word, <uint32_t>count)
        # The count is of shared memory, which a damaged process may have written.
        count = min(count, NOTIFICATIONS_MOST)
        return (pay(&self.meter, COST_signal_ns, <int64_t>count)
                + pay(&self.meter, COST_handler_cost_ns, <int64_t>count))

    cdef bint burn_c(self, int64_t duration_ns) noexcept nogil:
        if duration_ns <= 0:
            return True
        with gil:
            return self.ask(COMPUTE, duration_ns)

    cdef bint sleep_c(self, int64_t duration_ns) noexcept nogil:
        if duration_ns <= 0:
            return True
        self.word = NULL
        with gil:
            return self.ask(SLEEP, self.now_c() + duration_ns)

    cdef bint pause(self, int64_t until_ns) noexcept nogil:
        with gil:
            return self.ask(POLL, until_ns)

    cdef bint yield_cpu(self, int64_t until_ns) noexcept nogil:
        with gil:
            return self.ask(OFFER, until_ns)

    cdef bint block(self, uint32_t *word, uint32_t seen, int64_t until_ns) noexcept nogil:
        if load_acquire_u32(word) != seen or self.now_c() >= until_ns:
            return True
        self.word = word
        self.seen = seen
        # The kernel knows of no sleeper here: a waker need not call it.
        if (self.runner != NULL and word == <uint32_t *>&self.runner.slot.word
                and self.runner.slot.armed == WAIT_SLOT_BLOCK):
            self.runner.slot.armed = WAIT_SLOT_WORD
        with gil:
            return self.ask(SLEEP, until_ns)

    cdef bint charge_kernel(self, int64_t cost_ns) noexcept nogil:
        if cost_ns > 0:
            self.task.kernel_ns += cost_ns
        return self.charge(cost_ns)

    cdef int64_t cpu_ns(self) noexcept nogil:
        return self.task.used_ns

    cdef bint ask(self, Wish wish, int64_t argument) noexcept:
        if self.failed:
            return False
        try:
            self._ask(wish, argument)
            return True
        except BaseException as error:
            self.failure = error
            self.failed = True
            return False

    cdef int _ask(self, Wish wish, int64_t argument) except -1:
        cdef int64_t offers
        if wish == COMPUTE:
            self.task.compute(argument)
        elif wish == POLL:
            self.task.poll(argument)
        elif wish == SLEEP:
            self.task.sleep(argument)
        else:
            offers = self.task.offer(argument)
            if self.runner != NULL:
                # The caller counts one; the others are looks that it was spared.
                self.runner.account.yields += <uint64_t>(offers - 1)
                self.runner.account.system_calls += <uint64_t>(offers - 1)
        return 0
