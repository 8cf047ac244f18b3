"""How far apart two CPUs are now: the round trip of one cache line between them.

A virtual machine's CPUs change distance under a run, and every communication figure
follows. Two pinned threads hand one line to and fro without the GIL; a batch of round
trips gives one figure, and the batches of one probe say *near*, *far* or *mixed*.
"""

import mmap
import numpy as np
import os
import signal
import threading
import time
from contextlib import contextmanager

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.atomics cimport cpu_pause, load_acquire_u32, store_release_u32
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.native.futex cimport wait_slot_arm, wait_slot_disarm, wait_slot_sleep, wait_slot_wake

from shrimpmx.native import cores


# -- The processes of a probe: a parent and a child, pinned, over one page of shared memory.
#
# A child has begun, with its place and its priority, before anything is measured: on a busy machine
# that alone takes longer than a short measurement. Every loop has a deadline, so that such a
# machine gives fewer samples instead of none for ever.

# FIFO priority of an interrupt agent, as in a run.
HANDLER_PRIORITY = 50
# How long a child may take to begin, s; between two looks at it, s (ours).
BEGIN_S = 5.0
LOOK_S = 0.0005


class Shared:
    """A page that forked processes share, which sleep for `sleep_ns` at most."""

    def __init__(self, int64_t sleep_ns=SLEEP_LIMIT_NS):
        cdef shared_page *page
        self.memory = mmap.mmap(-1, (sizeof(shared_page) + 4095) // 4096 * 4096)
        self.view = np.frombuffer(self.memory, dtype=np.uint8)
        self.address = self.view.ctypes.data
        page = page_of(self)
        page.sleep_ns = sleep_ns

    def samples(self):
        """The figures without the first tenth, which warmed up; float64, ns."""
        cdef shared_page *page = page_of(self)
        count = page.count
        found = np.empty(count, dtype=np.float64)
        for i in range(count):
            found[i] = page.samples[i]
        return found[count // 10:]


cdef shared_page *page_of(shared):
    return <shared_page *> <size_t> shared.address


cdef bint keep(shared_page *page, int64_t sample_ns) noexcept nogil:
    if page.count >= SAMPLES_MAX:
        return False
    page.samples[page.count] = sample_ns
    page.count += 1
    return True


@contextmanager
def child(shared, int cpu, function, int priority=0):
    """A forked process pinned to `cpu` that runs `function(shared)` until it ends.

    It has the real-time `priority` where that is permitted and not 0. It has begun, unless it could
    not within BEGIN_S.
    """
    cdef shared_page *page = page_of(shared)
    parent = os.getpid()
    forked = os.fork()
    if forked == 0:
        try:
            cores.die_with_parent(parent)
            cores.pin([cpu])
            if priority and cores.realtime_permitted()[0]:
                cores.set_realtime(priority)
            store_release_u32(&page.ready, 1)
            function(shared)
        finally:
            os._exit(0)
    try:
        limit_s = time.monotonic() + BEGIN_S
        while not load_acquire_u32(&page.ready) and time.monotonic() < limit_s:
            time.sleep(LOOK_S)
        yield
    finally:
        store_release_u32(&page.stop, 1)
        with nogil:
            wait_slot_wake(&page.slots[1])
        os.kill(forked, signal.SIGKILL)
        os.waitpid(forked, 0)


@contextmanager
def pinned(int cpu):
    """This process is on `cpu` meanwhile."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


cdef bint block_until(shared_page *page, int side, uint32_t turn,
                      int64_t deadline_ns) noexcept nogil:
    cdef uint32_t seen
    while load_acquire_u32(&page.turn) != turn:
        if load_acquire_u32(&page.stop) or monotonic_now_ns() > deadline_ns:
            return False
        seen = wait_slot_arm(&page.slots[side])
        if load_acquire_u32(&page.turn) == turn or load_acquire_u32(&page.stop):
            wait_slot_disarm(&page.slots[side])
            continue
        wait_slot_sleep(&page.slots[side], seen, page.sleep_ns)
    return True


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
