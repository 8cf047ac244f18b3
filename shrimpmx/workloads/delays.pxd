"""Delays drawn from a seed: computing before a send, or how long a message keeps one waiting."""

from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t

from shrimpmx.native.random cimport random_share

cdef enum DelayKind:
    DELAY_EVEN               # evenly from low_ns to high_ns; where these are equal, just that
    DELAY_EXPONENTIAL        # with mean mean_ns
    DELAY_BIMODAL            # mean_ns / 5 nine times of ten, else so long that the mean holds

cdef struct Delays:
    DelayKind kind
    int64_t low_ns
    int64_t high_ns
    double mean_ns
    uint64_t state           # of the generator, see native/random.pxd

cdef enum:
    # Of a bimodal delay: the share that is short, in tenths, and how short, as a part of the mean.
    SHORT_TENTHS = 9
    SHORT_PART = 5


# Evenly from low_ns to high_ns, or always low_ns if high_ns is 0. InputError if that is less.
cdef int delays_between(Delays *delays, int64_t low_ns, int64_t high_ns, uint64_t seed) except -1
# By the name of a distribution (WorkloadParameters.arrivals) with this mean; "adversary": each
# just beyond `limit_ns`. InputError if there is no such distribution.
cdef int delays_arriving(Delays *delays, str arrivals, int64_t mean_ns, int64_t limit_ns,
                         uint64_t seed) except -1


cdef inline int64_t next_delay_ns(Delays *delays) noexcept nogil:
    """The next delay, ns."""
    cdef double share
    if delays.kind == DELAY_EVEN and delays.low_ns == delays.high_ns:
        return delays.low_ns
    share = random_share(&delays.state)
    if delays.kind == DELAY_EXPONENTIAL:
        return <int64_t>(-delays.mean_ns * log(share))
    if delays.kind == DELAY_BIMODAL:
        if share * 10 <= SHORT_TENTHS:
            return <int64_t>(delays.mean_ns / SHORT_PART)
        # (1 - 0.9 / 5) / 0.1 = 8.2
        return <int64_t>(delays.mean_ns * (10 - <double>SHORT_TENTHS / SHORT_PART)
                         / (10 - SHORT_TENTHS))
    return delays.low_ns + <int64_t>(share * (delays.high_ns - delays.low_ns))
