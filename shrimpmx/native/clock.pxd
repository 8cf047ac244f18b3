"""Clocks: monotonic, time-stamp counter and virtual; see clock.h."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "native/clock.h" nogil:
    enum:
        CLOCK_KIND_MONOTONIC
        CLOCK_KIND_TSC
        CLOCK_KIND_VIRTUAL
    const int64_t NEVER_NS
    # "clock" is also a C library function, hence the struct tag in the C name.
    cdef struct Clock "clock":
        uint32_t kind
        uint32_t shift
        uint64_t multiplier
        uint64_t ticks_base
        int64_t ns_base
        int64_t virtual_ns
    int64_t monotonic_now_ns() noexcept
    uint64_t counter_ticks() noexcept
    int64_t clock_now_ns(const Clock *clock) noexcept

# Fills a run's clock. `kind` is "monotonic", "tsc" or "virtual"; "tsc" becomes
# "monotonic" where the counter is not steady. Returns the CLOCK_KIND_ used.
cdef int clock_initialise(Clock *clock, str kind) except -1


# -- Computing for a while; see clock.h.

cdef extern from "native/clock.h" nogil:
    # Uses `delay_ns` of CPU: time during which this process was preempted does not count.
    void burn_ns(const Clock *clock, int64_t delay_ns) noexcept
