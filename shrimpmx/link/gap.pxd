"""What the sending host takes per packet, as a gap behind each frame of a line.

A fixed part and an exponentially distributed one, drawn from a seed: a host that sends in a loop
is interrupted, misses its caches, enters the kernel. Inline, a few ns without the latter.
"""

from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t

from shrimpmx.native.random cimport random_share


cdef struct host_gap:
    int64_t fixed_ns
    double mean_ns           # of the part that varies
    uint64_t state           # of the generator, never 0


cdef inline void host_gap_initialise(host_gap *gap, int64_t mean_ns, double jitter,
                                     uint64_t seed) noexcept nogil:
    """`jitter`: the share of `mean_ns` that varies, 0 to 1."""
    gap.mean_ns = mean_ns * jitter
    gap.fixed_ns = mean_ns - <int64_t>gap.mean_ns
    gap.state = (seed + 1) * <uint64_t>0x9E3779B97F4A7C15   # 2^64 / golden ratio: odd, so not 0
    if gap.state == 0:
        gap.state = 1


cdef inline int64_t host_gap_draw(host_gap *gap) noexcept nogil:
    """The next gap, ns."""
    if gap.mean_ns == 0:
        return gap.fixed_ns
    return gap.fixed_ns + <int64_t>(-gap.mean_ns * log(random_share(&gap.state)))
