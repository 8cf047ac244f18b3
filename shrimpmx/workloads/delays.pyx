"""Delays drawn from a seed: computing before a send, or how long a message keeps one waiting."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

import numpy as np

from shrimpmx.native.random cimport random_state

from shrimpmx.errors import InputError

cdef enum:
    # How far an adversary's delays lie beyond the limit (ours): the waiter begins to spin a few
    # microseconds after the moment that they count from.
    BEYOND_NS = 20_000


cdef int delays_between(Delays *delays, int64_t low_ns, int64_t high_ns, uint64_t seed) except -1:
    if low_ns < 0 or 0 < high_ns < low_ns or high_ns < 0:
        raise InputError(
            f"delays lie between two times, but {low_ns} ns and {high_ns} ns were given")
    delays.kind = DELAY_EVEN
    delays.low_ns = low_ns
    delays.high_ns = high_ns if high_ns > 0 else low_ns
    delays.mean_ns = 0
    delays.state = random_state(seed)
    return 0


cdef int delays_arriving(Delays *delays, str arrivals, int64_t mean_ns, int64_t limit_ns,
                         uint64_t seed) except -1:
    if arrivals == "adversary":
        return delays_between(delays, limit_ns + BEYOND_NS, 0, seed)
    delays_between(delays, mean_ns, 0, seed)
    delays.mean_ns = mean_ns
    if arrivals == "uniform":
        delays.low_ns = 0
        delays.high_ns = 2 * mean_ns
    elif arrivals == "exponential":
        delays.kind = DELAY_EXPONENTIAL
    elif arrivals == "bimodal":
        delays.kind = DELAY_BIMODAL
    elif arrivals != "fixed":
        raise InputError(
            "arrivals are fixed, uniform, exponential, bimodal or adversary, "
            f"not {arrivals!r}")
    return 0


cdef object drawn(Delays *delays, uint32_t count):
    cdef uint32_t number
    cdef int64_t[::1] figures
    found = np.empty(count, dtype=np.int64)
    figures = found
    for number in range(count):
        figures[number] = next_delay_ns(delays)
    return found


def draw_delays(int64_t low_ns, int64_t high_ns, uint64_t seed, uint32_t count):
    """The first `count` delays of a ping-pong, ns (int64); for tests and analysis."""
    cdef Delays delays
    delays_between(&delays, low_ns, high_ns, seed)
    return drawn(&delays, count)


def draw_arrivals(str arrivals not None, int64_t mean_ns, int64_t limit_ns, uint64_t seed,
                  uint32_t count):
    """The first `count` arrival delays of a distribution, ns (int64); for tests and analysis."""
    cdef Delays delays
    delays_arriving(&delays, arrivals, mean_ns, limit_ns, seed)
    return drawn(&delays, count)
