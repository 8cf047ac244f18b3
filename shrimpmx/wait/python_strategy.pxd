"""Adapter from waits to a waiting strategy written in Python."""

from libc.stdint cimport int64_t

from shrimpmx.wait.strategy cimport Strategy, WaitEnvironment, WaitResult, ready_function

cdef enum:
    # Decisions beside a time to spin, ns, which is positive.
    DECIDED_YIELD = 0
    DECIDED_SLEEP = -1
    DECIDED_STOP = -2        # the user's code has failed


cdef class PythonStrategy(Strategy):
    cdef readonly object strategy
    cdef bint learns         # it wants to know how waits end

    cdef int64_t decide(self, int64_t waited_ns) noexcept nogil
    cdef int64_t decision_of(self, object answer) except *
    cdef WaitResult follow(self, WaitEnvironment *environment, ready_function ready,
                           void *context, int64_t start_ns, int64_t deadline_ns) noexcept nogil
    cdef void tell_end(self, int64_t waited_ns, WaitResult result) noexcept nogil
