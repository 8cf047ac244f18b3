"""What a simulated host has to know of this machine beside what host_costs.pyx measures.

Each probe is a loop of its own, in processes of its own, apart from any emulated cluster.
"""

import mmap
import os
import signal
from contextlib import contextmanager

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from shrimpmx.native import cores
from shrimpmx.native.atomics cimport (
    cpu_pause, load_acquire_u32, load_relaxed_u32, store_release_u32,
)
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.native.futex cimport futex_wait, futex_wake

from shrimpmx.bench.host_costs import HANDLER_PRIORITY

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef enum:
    BATCH = 1000
    SAMPLES_MAX = 4096
    # Longer than a CPU needs to fall asleep (as in host_costs.pyx).
    SETTLE_NS = 100_000
    SLEEP_LIMIT_NS = 50_000_000
    # Between two readings of the clock, another process had the CPU (ours).
    GAP_NS = 200_000
    COPY_BYTES = 4096
    COPIED_BYTES = 4 << 20

cdef struct shared_page:
    uint32_t word           # a futex: counted up by the one that wakes
    uint32_t unused0[15]
    uint32_t asleep         # the child: how often it has gone to sleep
    uint32_t unused1[15]
    uint32_t stop
    uint32_t unused2[15]
    int64_t done_ns         # the handler: when it was done, before it slept
    uint32_t runs           # ... and how often
    uint32_t unused3[13]
    uint32_t count
    int64_t samples[SAMPLES_MAX]


class _Shared:
    """A page that forked processes share."""

    def __init__(self):
        self.memory = mmap.mmap(-1, (sizeof(shared_page) + 4095) // 4096 * 4096)
        self.view = np.frombuffer(self.memory, dtype=np.uint8)
        self.address = self.view.ctypes.data


cdef inline shared_page *_page(shared):
    return <shared_page *> <size_t> shared.address


@contextmanager
def _child(shared, int cpu, function, until_ns):
    """A forked process pinned to `cpu` that runs `function(shared, until_ns)`."""
    cdef shared_page *page = _page(shared)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            cores.die_with_parent(parent)
            cores.pin([cpu])
            function(shared, until_ns)
        finally:
            os._exit(0)
    try:
        yield
    finally:
        store_release_u32(&page.stop, 1)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def _pinned(int cpu):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def looks(int cpu, double seconds):
    """One look of a spinning process and its pause, ns, each the mean of 1000."""
    cdef uint32_t flag = 0
    cdef int64_t begin_ns, now_ns, end_ns
    found = []
    with _pinned(cpu):
        now_ns = monotonic_now_ns()
        end_ns = now_ns + <int64_t>(seconds * 1e9)
        while not found or now_ns < end_ns:
            with nogil:
                begin_ns = monotonic_now_ns()
                for _ in range(BATCH):
                    if load_acquire_u32(&flag) != 0:
                        break
                    cpu_pause()
                now_ns = monotonic_now_ns()
            found.append((now_ns - begin_ns) / <double>BATCH)
    return np.array(found)


def yields(int cpu, double seconds):
    """A sched_yield of a process that has its CPU to itself, ns, each the mean of 1000."""
    cdef int64_t begin_ns, now_ns, end_ns
    found = []
    with _pinned(cpu):
        now_ns = monotonic_now_ns()
        end_ns = now_ns + <int64_t>(seconds * 1e9)
        while not found or now_ns < end_ns:
            with nogil:
                begin_ns = monotonic_now_ns()
                for _ in range(BATCH):
                    sched_yield()
                now_ns = monotonic_now_ns()
            found.append((now_ns - begin_ns) / <double>BATCH)
    return np.array(found)


def copies(int cpu, double seconds):
    """A copy of 4 KiB between two buffers of 4 MiB, ns, each the mean of a whole one."""
    cdef uint8_t[::1] source = np.ones(COPIED_BYTES, dtype=np.uint8)
    cdef uint8_t[::1] target = np.zeros(COPIED_BYTES, dtype=np.uint8)
    cdef int64_t begin_ns, now_ns, end_ns
    cdef size_t at
    found = []
    with _pinned(cpu):
        now_ns = monotonic_now_ns()
        end_ns = now_ns + <int64_t>(seconds * 1e9)
        while not found or now_ns < end_ns:
            with nogil:
                begin_ns = monotonic_now_ns()
                at = 0
                while at < COPIED_BYTES:
                    memcpy(&target[at], &source[at], COPY_BYTES)
                    at += COPY_BYTES
                now_ns = monotonic_now_ns()
            found.append((now_ns - begin_ns) * <double>COPY_BYTES / COPIED_BYTES)
    return np.array(found)


cdef void _sleep_over_and_over(shared_page *page, int64_t until_ns, bint tells) noexcept nogil:
    cdef uint32_t seen = 0
    while load_acquire_u32(&page.stop) == 0 and monotonic_now_ns() < until_ns:
        store_release_u32(&page.asleep, seen + 1)
        while load_acquire_u32(&page.word) == seen and monotonic_now_ns() < until_ns:
            futex_wait(&page.word, seen, SLEEP_LIMIT_NS)
        seen = load_acquire_u32(&page.word)
        if tells:
            page.done_ns = monotonic_now_ns()
            store_release_u32(&page.runs, seen)  # D1: after done_ns; pairs with D2


def _sleeper(shared, int64_t until_ns):
    cdef shared_page *page = _page(shared)
    with nogil:
        _sleep_over_and_over(page, until_ns, False)


def _handler(shared, int64_t until_ns):
    cdef shared_page *page = _page(shared)
    if cores.realtime_permitted()[0]:
        cores.set_realtime(HANDLER_PRIORITY)
    with nogil:
        _sleep_over_and_over(page, until_ns, True)


cdef void _wake_over_and_over(shared_page *page, int64_t end_ns, bint keeps) noexcept nogil:
    """A wake-up each SETTLE_NS; `keeps` how long the calls took."""
    cdef int64_t until_ns, begin_ns
    cdef uint32_t number = 0
    while monotonic_now_ns() < end_ns and page.count < SAMPLES_MAX:
        until_ns = monotonic_now_ns() + SETTLE_NS
        while monotonic_now_ns() < until_ns or load_acquire_u32(&page.asleep) <= number:
            cpu_pause()
            if monotonic_now_ns() > end_ns:
                return
        number += 1
        begin_ns = monotonic_now_ns()
        store_release_u32(&page.word, number)
        futex_wake(&page.word, 1)
        if keeps:
            page.samples[page.count] = monotonic_now_ns() - begin_ns
            page.count += 1


cdef void _note_exits(shared_page *page, int64_t until_ns) noexcept nogil:
    """The burner that a handler interrupts: how long after its end it goes on."""
    cdef uint32_t seen = 0, runs
    cdef int64_t now_ns
    while load_relaxed_u32(&page.stop) == 0:
        runs = load_acquire_u32(&page.runs)  # D2
        now_ns = monotonic_now_ns()
        if now_ns > until_ns:
            return
        if runs != seen and page.count < SAMPLES_MAX:
            seen = runs
            page.samples[page.count] = now_ns - page.done_ns
            page.count += 1


def _burner(shared, int64_t until_ns):
    cdef shared_page *page = _page(shared)
    with nogil:
        _note_exits(page, until_ns)


def _spinner(shared, int64_t until_ns):
    cdef shared_page *page = _page(shared)
    with nogil:
        while load_acquire_u32(&page.stop) == 0 and monotonic_now_ns() < until_ns:
            cpu_pause()


def _samples(shared):
    """The figures of a page without the first tenth, which warmed up; ns."""
    cdef shared_page *page = _page(shared)
    count = page.count
    found = np.array([page.samples[i] for i in range(count)], dtype=np.float64)
    return found[count // 10:]


def wake_calls(int cpu, int other, double seconds):
    """The call that wakes a process which sleeps on another CPU, for its caller, ns."""
    shared = _Shared()
    cdef shared_page *page = _page(shared)
    cdef int64_t end_ns = monotonic_now_ns() + <int64_t>(seconds * 1e9)
    with _child(shared, other, _sleeper, end_ns + 1_000_000_000), _pinned(cpu):
        with nogil:
            _wake_over_and_over(page, end_ns, True)
    return _samples(shared)


def interrupt_exits(int cpu, int other, double seconds):
    """From the end of a handler on CPU `other` until the process goes on that it preempted, ns.

    The handler has real-time priority where permitted.
    """
    shared = _Shared()
    cdef shared_page *page = _page(shared)
    cdef int64_t end_ns = monotonic_now_ns() + <int64_t>(seconds * 1e9)
    late_ns = end_ns + 1_000_000_000
    with (
        _child(shared, other, _burner, late_ns),
        _child(shared, other, _handler, late_ns),
        _pinned(cpu),
    ):
        with nogil:
            _wake_over_and_over(page, end_ns, False)
    return _samples(shared)


def time_slices(int cpu, double seconds):
    """How long a process keeps its CPU while another one wants it, ns."""
    shared = _Shared()
    cdef int64_t now_ns = monotonic_now_ns(), before_ns, began_ns = 0
    cdef int64_t end_ns = now_ns + <int64_t>(seconds * 1e9)
    found = []
    with _child(shared, cpu, _spinner, end_ns), _pinned(cpu):
        before_ns = monotonic_now_ns()
        while before_ns < end_ns:
            with nogil:
                now_ns = monotonic_now_ns()
                while now_ns - before_ns < GAP_NS and now_ns < end_ns:
                    before_ns = now_ns
                    now_ns = monotonic_now_ns()
            if now_ns - before_ns >= GAP_NS:
                if began_ns:  # from the end of a gap to the next: others on the CPU do not count
                    found.append(before_ns - began_ns)
                began_ns = now_ns
            before_ns = now_ns
    return np.array(found, dtype=np.float64)
