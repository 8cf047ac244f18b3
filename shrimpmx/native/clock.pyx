"""Clocks: monotonic, time-stamp counter and virtual; see clock.h.

The time-stamp counter costs a third of clock_gettime and every process of a run
reads it with the same scale, which the supervisor finds once at start.
"""

import os
import time

from libc.stdint cimport int64_t, uint64_t

from shrimpmx.errors import InputError


cdef enum:
    # Multiplier's fixed point. 32 bits keep the scale exact to 0.1 ppb.
    SCALE_SHIFT = 32
    # Readings per pair; the one with the shortest bracket counts.
    PAIR_ATTEMPTS = 16

# The scale is taken over at least this time. Reading a pair is off by about 30 ns,
# so this bounds the error at 2 ppm; it is less the longer ago the import was (ours).
CALIBRATION_NS = 20_000_000
# An older first pair is taken anew: the machine may have slept since, which stops one
# clock and not the other (ours).
CALIBRATION_MAX_NS = 10_000_000_000

cdef struct Pair:
    uint64_t ticks
    int64_t ns


cdef Pair read_pair() noexcept nogil:
    """Counter and monotonic clock at one moment: the attempt with the shortest bracket."""
    cdef Pair best
    cdef int64_t before, after, shortest = NEVER_NS
    cdef uint64_t ticks
    cdef int _attempt
    best.ticks = 0
    best.ns = 0
    for _attempt in range(PAIR_ATTEMPTS):
        before = monotonic_now_ns()
        ticks = counter_ticks()
        after = monotonic_now_ns()
        if after - before < shortest:
            shortest = after - before
            best.ticks = ticks
            best.ns = before + (after - before) // 2
    return best


# Taken at import, so that a later calibration rarely has to wait.
cdef Pair first_pair = read_pair()


cdef wait_for_calibration():
    """Return when the first pair is old enough, and not too old, to take the scale from."""
    global first_pair
    since = monotonic_now_ns() - first_pair.ns
    if since > CALIBRATION_MAX_NS:
        first_pair = read_pair()
        since = 0
    if since < CALIBRATION_NS:
        time.sleep((CALIBRATION_NS - since) / 1e9)


cdef int clock_initialise(Clock *clock, str kind) except -1:
    cdef Pair now
    clock.kind = CLOCK_KIND_MONOTONIC
    clock.virtual_ns = 0
    clock.shift = SCALE_SHIFT
    clock.multiplier = 0
    clock.ticks_base = 0
    clock.ns_base = 0
    if kind == "virtual":
        clock.kind = CLOCK_KIND_VIRTUAL
    elif kind == "tsc":
        if tsc_is_steady():
            wait_for_calibration()
            now = read_pair()
            clock.multiplier = (<object>(now.ns - first_pair.ns) << SCALE_SHIFT) // (
                now.ticks - first_pair.ticks)
            clock.ticks_base = now.ticks
            clock.ns_base = now.ns
            clock.kind = CLOCK_KIND_TSC
    elif kind != "monotonic":
        raise InputError(f"a clock is 'monotonic', 'tsc' or 'virtual', not {kind!r}")
    return clock.kind


def calibrate(str kind="tsc"):
    """Fill a clock of `kind` as a run would, and return its fields.

    Keys: kind (the one used), shift, multiplier, ticks_base, ns_base, ticks_per_us.
    """
    cdef Clock clock
    clock_initialise(&clock, kind)
    names = {
        CLOCK_KIND_MONOTONIC: "monotonic",
        CLOCK_KIND_TSC: "tsc",
        CLOCK_KIND_VIRTUAL: "virtual",
    }
    return {
        "kind": names[clock.kind],
        "shift": clock.shift,
        "multiplier": clock.multiplier,
        "ticks_base": clock.ticks_base,
        "ns_base": clock.ns_base,
        "ticks_per_us": 1000.0 * 2.0**SCALE_SHIFT / clock.multiplier if clock.multiplier else 0.0,
    }


def read_calibrated(dict fields):
    """The time, ns, on a clock with the fields that `calibrate` gave."""
    cdef Clock clock
    clock.kind = CLOCK_KIND_TSC if fields["kind"] == "tsc" else CLOCK_KIND_MONOTONIC
    clock.shift = fields["shift"]
    clock.multiplier = fields["multiplier"]
    clock.ticks_base = fields["ticks_base"]
    clock.ns_base = fields["ns_base"]
    clock.virtual_ns = 0
    return clock_now_ns(&clock)


def now_ns():
    """The monotonic clock, ns."""
    return monotonic_now_ns()


def ticks():
    """The raw time-stamp counter."""
    return counter_ticks()


def tsc_is_steady():
    """Whether the time-stamp counter runs at one rate, in step on all CPUs and in idle states.

    The kernel takes "tsc" off its list of clock sources when it sees it drift.
    """
    if os.uname().machine == "aarch64":
        return True  # the generic timer is architected so
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        return False
    if "constant_tsc" not in flags or "nonstop_tsc" not in flags:
        return False
    try:
        with open("/sys/devices/system/clocksource/clocksource0/available_clocksource") as file:
            return "tsc" in file.read().split()
    except OSError:
        return True  # no sysfs here; the flags say enough
