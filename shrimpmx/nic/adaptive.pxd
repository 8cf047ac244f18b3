"""Coalescing that adapts its interrupt rate to the traffic, as Intel's drivers do."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.nic.coalescing cimport Cause, CoalescingPolicy


cdef enum LatencyClass:
    LOWEST_LATENCY = 0
    LOW_LATENCY = 1
    BULK = 2


cdef class AdaptiveRate(CoalescingPolicy):
    cdef readonly bint conservative
    cdef readonly double dilation
    cdef LatencyClass traffic
    cdef readonly uint32_t rate      # interrupts per second, at most
    cdef readonly int64_t interval_ns
    cdef int64_t open_ns             # when the interval since the last interrupt is over
    cdef uint32_t packets            # since the last report
    cdef uint64_t bytes

    cdef Cause wish(self, int64_t now_ns, Cause cause) noexcept nogil
    cdef void adapt(self) noexcept nogil
    cdef void use_rate(self, uint32_t rate) noexcept nogil


cdef class MarksAdaptive(AdaptiveRate):
    pass
