"""How far apart two CPUs are now: the round trip of one cache line between them.

A virtual machine's CPUs change distance under a run, and every communication figure
follows. Two pinned threads hand one line to and fro without the GIL; a batch of round
trips gives one figure, and the batches of one probe say *near*, *far* or *mixed*.
"""

import os
import threading

import numpy as np

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.atomics cimport cpu_pause, load_acquire_u32, store_release_u32
from shrimpmx.native.clock cimport monotonic_now_ns

# Round trips timed together: the clock's own cost (25 ns twice) stays below 1 % of a batch.
cdef enum:
    BATCH_ROUND_TRIPS = 64
    BATCHES_MAX = 2048
    SPINS_PER_CLOCK = 1024

# Between the two states seen on virtual machines, 110 and 490 ns (ours); one package's shared
# cache is below it on every machine that we know, another package above.
NEAR_BELOW_NS = 250.0
# A share of batches in the other state that makes a probe mixed; fewer are preemptions.
MIXED_SHARE = 0.2
# A probe's length. Twice per sample of a point, it must not be felt.
PROBE_NS = 6_000_000

cdef struct shared_line:
    uint32_t ping
    uint32_t unused0[31]
    uint32_t pong
    uint32_t unused1[31]
    uint32_t stop
    uint32_t unused2[31]


cdef void _answer(shared_line *line, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t seen = 0
    cdef uint32_t now_seen
    cdef uint32_t turns = 0
    while not load_acquire_u32(&line.stop):
        now_seen = load_acquire_u32(&line.ping)
        if now_seen != seen:
            seen = now_seen
            store_release_u32(&line.pong, seen)  # P2: answers; pairs with the load in _ask
            turns = 0
            continue
        cpu_pause()
        turns += 1
        if turns % SPINS_PER_CLOCK == 0 and monotonic_now_ns() > deadline_ns:
            return


cdef bint _ask(shared_line *line, uint32_t value, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turns = 0
    store_release_u32(&line.ping, value)  # P1: asks; pairs with the load in _answer
    while load_acquire_u32(&line.pong) != value:
        cpu_pause()
        turns += 1
        if turns % SPINS_PER_CLOCK == 0 and monotonic_now_ns() > deadline_ns:
            return False
    return True


cdef int _measure(shared_line *line, int64_t *batches, int64_t budget_ns) noexcept nogil:
    """Fill `batches` with ns per batch until the budget is used up; returns how many."""
    cdef int64_t begin_ns
    cdef int64_t end_ns
    cdef int64_t start_ns = monotonic_now_ns()
    cdef int64_t deadline_ns = start_ns + 2 * budget_ns
    cdef uint32_t value = 1
    cdef int count = 0
    cdef int _round
    # The other thread has to start first; that time is not the line's.
    if not _ask(line, value, deadline_ns):
        return 0
    start_ns = monotonic_now_ns()
    begin_ns = start_ns
    while count < BATCHES_MAX and begin_ns - start_ns < budget_ns:
        for _round in range(BATCH_ROUND_TRIPS):
            value += 1
            if not _ask(line, value, deadline_ns):
                return count
        end_ns = monotonic_now_ns()
        batches[count] = end_ns - begin_ns
        count += 1
        begin_ns = end_ns
    return count


def round_trips(int cpu_a, int cpu_b, int64_t budget_ns=PROBE_NS):
    """Round-trip times of one cache line between two CPUs, ns, one figure per batch of 64.

    Takes `budget_ns`, at most three times that if a CPU is busy. Returns a float64 array, empty
    if the CPUs were never free together. The caller's affinity is restored. Raises OSError if a
    CPU cannot be used.
    """
    memory = np.zeros(1024, dtype=np.uint8)
    batches = np.zeros(BATCHES_MAX, dtype=np.int64)
    cdef size_t address = <size_t> memory.ctypes.data
    cdef shared_line *line = <shared_line *> ((address + 127) // 128 * 128)
    cdef int64_t[::1] view = batches
    cdef int count
    failures = []

    def answer():
        cdef int64_t deadline_ns
        try:
            os.sched_setaffinity(0, {cpu_b})
        except OSError as error:
            failures.append(error)
            return
        deadline_ns = monotonic_now_ns() + 3 * budget_ns
        with nogil:
            _answer(line, deadline_ns)

    before = os.sched_getaffinity(0)
    thread = threading.Thread(target=answer, name="cache-line probe")
    os.sched_setaffinity(0, {cpu_a})
    try:
        thread.start()
        with nogil:
            count = _measure(line, &view[0], budget_ns)
            store_release_u32(&line.stop, 1)
        thread.join()
    finally:
        os.sched_setaffinity(0, before)
    if failures:
        raise failures[0]
    return batches[:count].astype(np.float64) / BATCH_ROUND_TRIPS


def classify(batches):
    """'near', 'far', 'mixed', or 'unknown' if there are too few figures; ns per round trip."""
    figures = np.asarray(batches, dtype=np.float64)
    if figures.size < 4:
        return "unknown"
    near = float((figures < NEAR_BELOW_NS).mean())
    if near >= 1 - MIXED_SHARE:
        return "near"
    return "far" if near <= MIXED_SHARE else "mixed"


def probe(cpus, int64_t budget_ns=PROBE_NS):
    """(state, median round trip in ns or None) between the first two of `cpus`.

    With fewer than two CPUs there is no distance: ('unknown', None).
    """
    pair = list(dict.fromkeys(cpus))[:2]
    if len(pair) < 2:
        return "unknown", None
    figures = round_trips(pair[0], pair[1], budget_ns)
    if figures.size == 0:
        return "unknown", None
    return classify(figures), float(np.median(figures))
