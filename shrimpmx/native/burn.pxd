"""Computing for a while; see burn.h."""

from libc.stdint cimport int64_t

from shrimpmx.native.clock cimport Clock

cdef extern from "native/burn.h" nogil:
    # Uses `delay_ns` of CPU: time during which this process was preempted does not count.
    void burn_ns(const Clock *clock, int64_t delay_ns) noexcept
