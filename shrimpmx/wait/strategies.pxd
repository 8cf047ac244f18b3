"""Waiting strategies: pure ones and hybrids, those that adapt, and one written in Python."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.wait.waiter cimport Strategy, WaitEnvironment, WaitResult, ready_function

# -- Waiting strategies: the pure ones, spin, sched, block and notify, and the hybrids.

cdef class Spin(Strategy):
    pass


cdef class Sched(Strategy):
    pass


cdef class Block(Strategy):
    pass


cdef class Notify(Strategy):
    cdef uint64_t runs_before  # handler runs of this process before begin()

    cdef void count(self, WaitEnvironment *environment) noexcept nogil


# What `block` does after the first look: arm the slot, enable the interrupts, look, sleep.
# Without `enables` the interrupts are left as they are.
cdef WaitResult block_until(WaitEnvironment *environment, ready_function ready, void *context,
                            int64_t deadline_ns, bint enables) noexcept nogil
# Offers the CPU to others once, counted and charged. False: the host cannot.
cdef bint yield_cpu(WaitEnvironment *environment, int64_t deadline_ns) noexcept nogil


# -- The hybrids: spin for a while, then fall back on a pure strategy.

cdef class SpinThen(Strategy):
    cdef readonly int64_t limit_ns
    cdef readonly Strategy fallback


# -- Spin-block that learns how long to spin, and whether to spin at all.

cdef enum:
    ADAPTIVE_HISTORY = 16    # delays remembered
    ADAPTIVE_LIMITS = 8      # limits compared
    ADAPTIVE_EPOCH = 64      # waits of an epoch


cdef class AdaptiveSpin(Strategy):
    cdef readonly int64_t t_block_ns
    cdef readonly int64_t limit_ns           # learned: the cheapest for the remembered delays
    cdef readonly bint spins                 # in this epoch; else it blocks at once
    cdef readonly bint on_trial              # this epoch tries what is not preferred
    cdef int64_t limits[ADAPTIVE_LIMITS]
    cdef int64_t costs[ADAPTIVE_LIMITS]      # what each would have cost
    cdef int64_t delays[ADAPTIVE_HISTORY]
    cdef uint32_t known                      # delays remembered
    cdef uint32_t oldest                     # index of the next one to forget
    cdef uint64_t waits                      # by this strategy
    cdef uint32_t unseen                     # waits since one spun for T_block
    # Of the epoch: when it began, and the waits then; 0 waits: there is none yet.
    cdef int64_t epoch_ns
    cdef uint64_t epoch_waits
    cdef double paces[2]                     # ns from wait to wait: blocking, spinning; 0: unknown
    cdef uint32_t rest                       # epochs left before the next trial
    cdef uint32_t pause                      # rest after it

    cdef int64_t next_limit(self) noexcept nogil
    cdef void observe(self, int64_t delay_ns) noexcept nogil
    cdef void look_at_epoch(self, int64_t now_ns) noexcept nogil
    cdef void end_epoch(self, double pace_ns) noexcept nogil
    cdef void forget(self) noexcept nogil


# -- Adapter from waits to a waiting strategy written in Python.

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
