"""The hybrids: spin for a while, then fall back on a pure strategy."""

from libc.stdint cimport int64_t

from shrimpmx.wait.strategy cimport Strategy


cdef class SpinThen(Strategy):
    cdef readonly int64_t limit_ns
    cdef readonly Strategy fallback
