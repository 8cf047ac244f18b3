"""Spin-block that learns how long to spin, and whether to spin at all."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.wait.strategy cimport Strategy, WaitEnvironment, WaitResult, ready_function

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
