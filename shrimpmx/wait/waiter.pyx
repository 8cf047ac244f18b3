"""A process's waiter: its strategy, its wait slot and its account."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uintptr_t
from libc.stdlib cimport free, malloc

from shrimpmx.native.atomics cimport fetch_add_u32, load_acquire_u32, load_relaxed_u32
from shrimpmx.native.clock cimport CLOCK_KIND_VIRTUAL, NEVER_NS
from shrimpmx.native.trace cimport Trace
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport runner_record

from shrimpmx.errors import InputError
from shrimpmx.shared.host import host_of


# -- Waiting strategies: one interface for ranks and runners.
#
# A strategy waits until `ready(context)` is true, a deadline passes or the run stops. It
# keeps the account of its process (struct wait_account): what the waiting cost, in the
# terms of the waiting paper, sections 3.2 and 3.3.

# Looks between two checks of the stop word and the clock: 16 looks of a few ns each keep a
# check, which touches a shared line and reads the clock, below a tenth of the loop. Under a virtual
# clock neither takes time, and a spin ends exactly at its limit.
cdef uint32_t LOOKS_PER_CHECK = 16

# What the values of WaitResult are called.
RESULTS = {-1: "stopped", 0: "timed out", 1: "ready"}


cdef class Strategy:
    """Base of the waiting strategies; subclasses override the compiled `persist`.

    `sleeps`: waits may arm the wait slot; `stands`: interrupts are enabled from begin() to end(),
    not by each wait.
    """

    sleeps = False
    stands = False

    def __cinit__(self, *args, **kwargs):
        self.name = "none"
        self.failure = None

    @classmethod
    def from_limit(cls, spin_ns):
        """A strategy with this spin limit, ns, if it has one."""
        return cls()

    def __repr__(self) -> str:
        return f"<strategy {self.name}>"

    cdef int begin(self, WaitEnvironment *environment) except -1:
        return 0

    cdef int end(self, WaitEnvironment *environment) except -1:
        return 0

    cdef WaitResult wait(self, WaitEnvironment *environment, ready_function ready,
                         void *context, int64_t deadline_ns) noexcept nogil:
        environment.account.waits += 1
        if ready(context):
            environment.account.at_once += 1
            return WAIT_READY
        return self.persist(environment, ready, context, deadline_ns)

    cdef WaitResult persist(self, WaitEnvironment *environment, ready_function ready,
                            void *context, int64_t deadline_ns) noexcept nogil:
        return WAIT_TIMED_OUT


cdef WaitResult spin_for(WaitEnvironment *environment, ready_function ready, void *context,
                         int64_t spin_ns, int64_t deadline_ns) noexcept nogil:
    if spin_ns <= 0:
        return WAIT_TIMED_OUT
    return spin_until(environment, ready, context,
                      min((<Host>environment.host).now_c() + spin_ns, deadline_ns))


cdef WaitResult spin_until(WaitEnvironment *environment, ready_function ready,
                           void *context, int64_t limit_ns) noexcept nogil:
    cdef int64_t start_ns = (<Host>environment.host).now_c()
    cdef int64_t now_ns = start_ns
    cdef bint is_virtual = (<Host>environment.host).clock.kind == CLOCK_KIND_VIRTUAL
    cdef uint32_t look = 0, looks_per_check = 1 if is_virtual else LOOKS_PER_CHECK
    cdef WaitResult result
    while True:
        if ready(context):
            environment.account.while_spinning += 1
            result = WAIT_READY
            break
        look += 1
        if look % looks_per_check == 0:
            # A stop comes late by at most that many looks, which is harmless.
            if load_relaxed_u32(environment.stop) != 0:
                result = WAIT_STOPPED
                break
            if limit_ns != NEVER_NS:
                now_ns = (<Host>environment.host).now_c()
                if now_ns >= limit_ns:
                    result = WAIT_TIMED_OUT
                    break
        if not (<Host>environment.host).pause(limit_ns):
            result = WAIT_STOPPED
            break
    if result == WAIT_READY or limit_ns == NEVER_NS:
        now_ns = (<Host>environment.host).now_c()
    environment.account.spin_ns += now_ns - start_ns
    return result


# -- A process's waiter: its strategy, its wait slot and its account.
#
# Ranks and runners wait alike: a Waiter binds a strategy to the process's record in the
# control segment, where wakers find the wait slot and readers the account.

cdef bint any_flag_changed(void *context) noexcept nogil:
    cdef WatchList *watch_list = <WatchList *>context
    cdef uint32_t index
    for index in range(watch_list.count):
        # F1: the flag before the data it announces; pairs with its writer's release.
        if load_acquire_u32(watch_list.watches[index].address) != watch_list.watches[index].seen:
            return True
    return False


# A Python predicate and the exception that ended it.
cdef class Predicate:
    cdef object function
    cdef object failure

    def __cinit__(self, function):
        self.function = function


cdef bint predicate_holds(void *context) noexcept with gil:
    cdef Predicate predicate = <Predicate>context
    try:
        return bool(predicate.function())
    except BaseException as error:
        predicate.failure = error
        return True


cdef class Waiter:
    """Waits on behalf of process `runner_index` with `strategy`; time passes as its `host` has it.

    begin() readies the strategy in the calling process and end() undoes that; a `with`
    statement does both, and raises what a strategy written in Python has raised.

    The process pays its host's costs: `reschedule_cost_ns` for each run of the kernel's scheduler,
    once for a yield and twice for a sleep, and `handler_cost_ns` in each run of the notification
    handler.
    """

    def __cinit__(self, Control control not None, uint32_t runner_index,
                  Strategy strategy not None, Host host=None):
        cdef runner_record *record
        if runner_index >= control.header.runners_count:
            raise IndexError(f"no runner {runner_index}; there are {control.header.runners_count}")
        record = control.runner(runner_index)
        self.control = control
        self.runner_index = runner_index
        self.strategy = strategy
        self.environment.slot = &record.slot
        self.environment.account = &record.account
        self.host = host_of(control) if host is None else host
        self.environment.host = <void *>self.host
        self.environment.stop = <const uint32_t *><const void *>&control.header.stop

    cdef int use_trace(self, Trace trace, uint32_t number) except -1:
        self.tracing = trace
        self.environment.trace = trace.checked_ring(number)
        return 0

    def begin(self) -> None:
        """Ready the strategy. For `notify` the process must be registered with its signal, unless
        its host counts notifications.
        """
        if not self.begun:
            self.host.charge_notifications()
            self.strategy.begin(&self.environment)
            self.begun = True

    def end(self) -> None:
        """Leave nothing armed."""
        if self.begun:
            self.begun = False
            self.strategy.end(&self.environment)

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, kind, error, traceback):
        self.end()
        if error is not self.strategy.failure:
            self.raise_failure(self.strategy)

    cdef int raise_failure(self, Strategy strategy) except -1:
        if strategy.failed:
            raise strategy.failure
        return 0

    cdef void use_gate(self, InterruptGate *gate) noexcept nogil:
        self.environment.gate = gate

    cdef void enter(self) noexcept nogil:
        # L1: counted before it arms the slot; pairs with L2 in strategies.pyx.
        fetch_add_u32(&self.environment.threads, 1)

    cdef void leave(self) noexcept nogil:
        fetch_add_u32(&self.environment.threads, <uint32_t>-1)  # disarmed before (strategies.pyx)

    cdef WaitResult wait(self, ready_function ready, void *context,
                         int64_t deadline_ns) noexcept nogil:
        return self.strategy.wait(&self.environment, ready, context, deadline_ns)

    cdef WaitResult wait_flags(self, const FlagWatch *watches, uint32_t count,
                               int64_t deadline_ns) noexcept nogil:
        return self.wait_flags_with(self.strategy, watches, count, deadline_ns)

    cdef WaitResult wait_with(self, Strategy strategy, ready_function ready, void *context,
                              int64_t deadline_ns) noexcept nogil:
        return strategy.wait(&self.environment, ready, context, deadline_ns)

    cdef WaitResult wait_flags_with(self, Strategy strategy, const FlagWatch *watches,
                                    uint32_t count, int64_t deadline_ns) noexcept nogil:
        cdef WatchList watch_list
        watch_list.watches = watches
        watch_list.count = count
        return strategy.wait(&self.environment, any_flag_changed, &watch_list, deadline_ns)

    cdef int admit(self, Strategy strategy) except -1:
        if strategy is self.strategy:
            if strategy.stands and not self.begun:
                raise InputError(f"{strategy.name} waits only after begin()")
        elif strategy.stands:
            raise InputError(
                f"{strategy.name} cannot be chosen for one call: its interrupts are on from "
                "begin() to end(), so it has to be the waiter's own strategy")
        elif self.begun and self.strategy.stands and strategy.sleeps:
            raise InputError(
                f"{strategy.name} cannot be chosen for one call while {self.strategy.name} is the "
                "waiter's own strategy: it would disable its interrupts; choose spin or sched")
        return 0

    def wait_words(self, watches: list, deadline_ns=None, strategy=None) -> str:
        """Wait until any watched 32-bit word differs from its value when last seen.

        `watches`: (address, seen) pairs; `deadline_ns`: on the run's clock, None for ever;
        `strategy`: how to wait this time, the waiter's own if None. Returns "ready", "timed out"
        or "stopped". InputError if the strategy cannot be used for one call: `notify` and
        `watchdog` have to be the waiter's own, and beside them only those that do not sleep work.
        """
        cdef Strategy chosen = self.chosen(strategy)
        cdef uint32_t count = len(watches)
        cdef int64_t deadline = NEVER_NS if deadline_ns is None else deadline_ns
        cdef FlagWatch *array = <FlagWatch *>malloc(max(count, 1) * sizeof(FlagWatch))
        cdef WaitResult result
        if array == NULL:
            raise MemoryError
        try:
            for index, (address, seen) in enumerate(watches):
                array[index].address = <const void *><uintptr_t>address
                array[index].seen = seen
            self.enter()
            with nogil:
                result = self.wait_flags_with(chosen, array, count, deadline)
            self.leave()
            self.host.check()
        finally:
            free(array)
        self.raise_failure(chosen)
        return RESULTS[result]

    def wait_until(self, function, deadline_ns=None, strategy=None) -> str:
        """Wait until the Python function `function` returns something true.

        Each look takes the GIL (about 50 ns). `strategy`, returned words and InputError: as for
        wait_words(); an exception of `function` ends the wait and is raised.
        """
        cdef Strategy chosen = self.chosen(strategy)
        cdef Predicate predicate = Predicate(function)
        cdef int64_t deadline = NEVER_NS if deadline_ns is None else deadline_ns
        cdef WaitResult result
        self.enter()
        with nogil:
            result = self.wait_with(chosen, predicate_holds, <void *>predicate, deadline)
        self.leave()
        self.host.check()
        if predicate.failure is not None:
            raise predicate.failure
        self.raise_failure(chosen)
        return RESULTS[result]

    cdef Strategy chosen(self, Strategy strategy):
        if strategy is None:
            return self.strategy
        self.admit(strategy)
        return strategy

    def account(self) -> dict:
        """What waiting has cost this process so far; see struct wait_account."""
        return self.control.runner_account(self.runner_index)


# -- A gate that keeps what waits ask of it, for tests: no device, no interrupts.

CALLS = ("enable", "disable", "always", "watch", "never", "polled")

cdef enum:
    CALLS_MAX = 1024

cdef struct CallRecord:
    uint32_t count
    unsigned char calls[CALLS_MAX]   # indices of CALLS
    PyObject *gate                   # a RecordedGate whose `at_enable` is called, or NULL


cdef inline void keep(void *context, unsigned char call) noexcept nogil:
    cdef CallRecord *record = <CallRecord *>context
    record.calls[record.count % CALLS_MAX] = call
    record.count += 1


cdef void keep_enable(void *context) noexcept nogil:
    keep(context, 0)
    if (<CallRecord *>context).gate != NULL:
        call_at_enable(<CallRecord *>context)


cdef void call_at_enable(CallRecord *record) noexcept with gil:
    (<RecordedGate>record.gate).at_enable()


cdef void keep_disable(void *context) noexcept nogil:
    keep(context, 1)


cdef void keep_always(void *context) noexcept nogil:
    keep(context, 2)


cdef void keep_watch(void *context) noexcept nogil:
    keep(context, 3)


cdef void keep_never(void *context) noexcept nogil:
    keep(context, 4)


cdef void keep_polled(void *context) noexcept nogil:
    keep(context, 5)


cdef class RecordedGate:
    """The gate of `waiter` from now on; `calls()` are the names of what it was asked, in order.

    `at_enable` is called when a wait has enabled the interrupts and has yet to look once more.
    """

    cdef InterruptGate gate
    cdef CallRecord record
    cdef Waiter waiter
    cdef object at_enable

    def __cinit__(self, Waiter waiter not None, at_enable=None):
        self.gate = InterruptGate(
            keep_enable, keep_disable, keep_always, keep_watch, keep_never, keep_polled,
            &self.record)
        self.waiter = waiter
        self.at_enable = at_enable
        self.record.gate = NULL if at_enable is None else <PyObject *>self
        waiter.use_gate(&self.gate)

    def __dealloc__(self):
        if self.waiter is not None:
            self.waiter.use_gate(NULL)

    def calls(self) -> list:
        cdef uint32_t index
        cdef list names = []
        for index in range(min(self.record.count, <uint32_t>CALLS_MAX)):
            names.append(CALLS[self.record.calls[index]])
        return names
