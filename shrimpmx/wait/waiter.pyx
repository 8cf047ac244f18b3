"""A process's waiter: its strategy, its wait slot and its account.

Ranks and runners wait alike: a Waiter binds a strategy to the process's record in the
control segment, where wakers find the wait slot and readers the account.
"""

from libc.stdint cimport int64_t, uint32_t, uintptr_t
from libc.stdlib cimport free, malloc

from shrimpmx.native.atomics cimport fetch_add_u32, load_acquire_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport runner_record
from shrimpmx.wait.strategy cimport InterruptGate, Strategy, WaitResult, ready_function

from shrimpmx.errors import InputError
from shrimpmx.shared.host import host_of
from shrimpmx.wait.strategy import RESULTS


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
