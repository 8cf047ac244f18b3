"""Adapter from waits to a waiting strategy written in Python.

A decision takes the GIL, the looks between two decisions do not. To sleep is to block as `block`
does, with its order of arming, looking and sleeping, so no wake-up is lost. The first exception is
kept in `failure`; after it the user's code is not called any more and waits end as if the run were
stopped, and the waiter raises it.
"""

from libc.stdint cimport int64_t

cdef extern from "Python.h":
    int Py_IsInitialized() nogil

from shrimpmx.native.atomics cimport load_relaxed_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.host cimport Host
from shrimpmx.wait.strategies cimport block_until, yield_cpu
from shrimpmx.wait.strategy cimport (
    WAIT_READY, WAIT_STOPPED, WAIT_TIMED_OUT, Strategy, WaitEnvironment, WaitResult, ready_function,
    spin_for,
)

from shrimpmx.errors import InputError
from shrimpmx.wait.strategy import RESULTS
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
            f"{self.name}.idle returned {answer!r}; it must return 'yield', 'sleep' or for how "
            "many ns to spin, a whole number from 1 on"
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
