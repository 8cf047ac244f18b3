"""Waiting strategies: the pure ones, spin, sched, block and notify, and the hybrids."""

from libc.stdint cimport int64_t, uint64_t

from shrimpmx.wait.strategy cimport Strategy, WaitEnvironment, WaitResult, ready_function

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
