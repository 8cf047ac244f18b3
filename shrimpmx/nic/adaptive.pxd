"""Coalescing that adapts its interrupt rate to the traffic, as Intel's drivers do."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.nic.strategies cimport Cause, CoalescingPolicy

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


# -- Dynamic interrupt moderation: net_dim of Linux.

cdef enum:
    DIM_PROFILES = 5
    DIM_START_PROFILE = 1
    DIM_EVENTS = 64              # interrupts between two decisions
    DIM_TIRED = 10               # steps after which the search rests: twice the profiles
    DIM_SIGNIFICANT_PERCENT = 10    # more than this is a difference


cdef enum DimState:
    DIM_PARKED_ON_TOP = 0
    DIM_PARKED_TIRED = 1
    DIM_GOING_RIGHT = 2
    DIM_GOING_LEFT = 3


cdef struct dim_sample:          # totals, and when they were read
    uint64_t bytes
    uint64_t packets
    uint64_t events
    int64_t time_ns


cdef struct dim_rates:           # per ms, rounded up
    uint64_t bytes
    uint64_t packets
    uint64_t events


cdef class DimDecision:
    cdef readonly double dilation
    cdef readonly uint32_t profile
    cdef readonly uint32_t steps_left
    cdef readonly uint32_t steps_right
    cdef readonly uint32_t tired
    cdef DimState search
    cdef bint measuring          # `start` is valid
    cdef dim_sample start
    cdef dim_rates previous

    cdef uint32_t count(self, const dim_sample *now) noexcept nogil
    cdef bint rates_until(self, const dim_sample *now, dim_rates *rates) noexcept nogil
    cdef void decide(self, const dim_rates *now) noexcept nogil
    cdef void go_on(self, bint better) noexcept nogil
    cdef void leave_parking(self) noexcept nogil
    cdef void turn(self) noexcept nogil
    cdef bint just_past_the_top(self) noexcept nogil
    cdef bint at_the_edge(self) noexcept nogil
    cdef void step(self) noexcept nogil
    cdef void park(self, DimState state) noexcept nogil


cdef class Dim(CoalescingPolicy):
    cdef readonly DimDecision decision
    cdef readonly int64_t delay_ns
    cdef readonly uint32_t frames
    cdef bint restarts           # the timer, at each completion
    cdef int64_t[DIM_PROFILES] delays_ns
    cdef uint32_t[DIM_PROFILES] limits
    cdef dim_sample totals
    cdef uint32_t waiting

    cdef void use_profile(self, uint32_t profile) noexcept nogil


cdef class DimCqe(Dim):
    pass
