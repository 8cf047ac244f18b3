"""What this host charges: wake-ups, an interrupt's way to its handler, a context switch.

Two or three processes, pinned, over one page of shared memory. Every loop has a deadline, so
that a busy machine gives fewer samples instead of none for ever.
"""

import mmap
import os
import signal
from contextlib import contextmanager

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native import cores
from shrimpmx.native.atomics cimport cpu_pause, load_acquire_u32, store_release_u32
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.native.futex cimport (
    wait_slot, wait_slot_arm, wait_slot_disarm, wait_slot_sleep, wait_slot_wake,
)

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef enum:
    SAMPLES_MAX = 4096
    # Longer than a CPU needs to fall asleep and short of its deep idle states (ours).
    SETTLE_NS = 100_000
    SLEEP_LIMIT_NS = 50_000_000

# FIFO priority of an interrupt agent, as in a run.
HANDLER_PRIORITY = 50

cdef struct shared_page:
    wait_slot slots[2]      # one per side: 0 the parent, 1 the child
    uint32_t turn           # parent and child: whose turn it is, counted up
    uint32_t unused0[15]
    uint32_t stop           # parent: the children end
    uint32_t ready          # child: it has its place and priority
    uint32_t unused1[14]
    int64_t sent_ns         # parent: when the wake-up was sent
    int64_t samples[SAMPLES_MAX]
    uint64_t count


class _Shared:
    """A page that forked processes share."""

    def __init__(self):
        self.memory = mmap.mmap(-1, (sizeof(shared_page) + 4095) // 4096 * 4096)
        self.view = np.frombuffer(self.memory, dtype=np.uint8)
        self.address = self.view.ctypes.data


cdef inline shared_page *_page(shared):
    return <shared_page *> <size_t> shared.address


@contextmanager
def _child(shared, int cpu, function):
    """A forked process pinned to `cpu` that runs `function(shared)` until it ends."""
    cdef shared_page *page = _page(shared)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            cores.die_with_parent(parent)
            cores.pin([cpu])
            function(shared)
        finally:
            os._exit(0)
    try:
        yield child
    finally:
        store_release_u32(&page.stop, 1)
        with nogil:
            wait_slot_wake(&page.slots[1])
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


cdef bint _block_until(shared_page *page, int side, uint32_t turn,
                       int64_t deadline_ns) noexcept nogil:
    """Sleep until it is `turn`; False at a stop or past the deadline."""
    cdef uint32_t seen
    while load_acquire_u32(&page.turn) != turn:
        if load_acquire_u32(&page.stop) or monotonic_now_ns() > deadline_ns:
            return False
        seen = wait_slot_arm(&page.slots[side])
        if load_acquire_u32(&page.turn) == turn or load_acquire_u32(&page.stop):
            wait_slot_disarm(&page.slots[side])
            continue
        wait_slot_sleep(&page.slots[side], seen, SLEEP_LIMIT_NS)
    return True


cdef void _block_answer(shared_page *page, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 1
    while _block_until(page, 1, turn, deadline_ns):
        store_release_u32(&page.turn, turn + 1)  # H1: hands the turn over; pairs with H2
        wait_slot_wake(&page.slots[0])
        turn += 2


cdef void _block_ask(shared_page *page, int64_t end_ns, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 0
    cdef int64_t begin_ns = monotonic_now_ns()
    cdef int64_t now_ns = begin_ns
    while page.count < SAMPLES_MAX and now_ns < end_ns:
        store_release_u32(&page.turn, turn + 1)  # H2: hands the turn over; pairs with H1
        wait_slot_wake(&page.slots[1])
        turn += 2
        if not _block_until(page, 0, turn, deadline_ns):
            return
        now_ns = monotonic_now_ns()
        page.samples[page.count] = (now_ns - begin_ns) // 2
        page.count += 1
        begin_ns = now_ns


cdef bint _yield_until(shared_page *page, uint32_t turn, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turns = 0
    while load_acquire_u32(&page.turn) != turn:
        turns += 1
        if load_acquire_u32(&page.stop) or (turns % 64 == 0 and monotonic_now_ns() > deadline_ns):
            return False
        sched_yield()
    return True


cdef void _yield_answer(shared_page *page, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 1
    while _yield_until(page, turn, deadline_ns):
        store_release_u32(&page.turn, turn + 1)
        turn += 2


cdef void _yield_ask(shared_page *page, int64_t end_ns, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 0
    cdef int64_t begin_ns = monotonic_now_ns()
    cdef int64_t now_ns = begin_ns
    while page.count < SAMPLES_MAX and now_ns < end_ns:
        store_release_u32(&page.turn, turn + 1)
        turn += 2
        if not _yield_until(page, turn, deadline_ns):
            return
        now_ns = monotonic_now_ns()
        page.samples[page.count] = (now_ns - begin_ns) // 2
        page.count += 1
        begin_ns = now_ns


cdef void _handle(shared_page *page, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 1
    while _block_until(page, 1, turn, deadline_ns):
        if page.count >= SAMPLES_MAX:
            return
        page.samples[page.count] = monotonic_now_ns() - page.sent_ns
        page.count += 1
        store_release_u32(&page.turn, turn + 1)  # H3: the sample stands; pairs with H4
        turn += 2


cdef void _interrupt(shared_page *page, int64_t end_ns, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 0
    cdef int64_t until_ns
    while monotonic_now_ns() < end_ns:
        until_ns = monotonic_now_ns() + SETTLE_NS
        while monotonic_now_ns() < until_ns:
            cpu_pause()
        page.sent_ns = monotonic_now_ns()
        store_release_u32(&page.turn, turn + 1)
        wait_slot_wake(&page.slots[1])
        turn += 2
        while load_acquire_u32(&page.turn) != turn:  # H4: pairs with H3
            cpu_pause()
            if monotonic_now_ns() > deadline_ns:
                return


cdef void _burn(shared_page *page, int64_t deadline_ns) noexcept nogil:
    while not load_acquire_u32(&page.stop) and monotonic_now_ns() < deadline_ns:
        cpu_pause()


def _answer_blocking(shared):
    cdef shared_page *page = _page(shared)
    with nogil:
        _block_answer(page, monotonic_now_ns() + 60 * <int64_t> 1_000_000_000)


def _answer_yielding(shared):
    cdef shared_page *page = _page(shared)
    with nogil:
        _yield_answer(page, monotonic_now_ns() + 60 * <int64_t> 1_000_000_000)


def _burner(shared):
    cdef shared_page *page = _page(shared)
    with nogil:
        _burn(page, monotonic_now_ns() + 60 * <int64_t> 1_000_000_000)


def _handler(shared):
    cdef shared_page *page = _page(shared)
    if cores.realtime_permitted()[0]:
        cores.set_realtime(HANDLER_PRIORITY)
    with nogil:
        _handle(page, monotonic_now_ns() + 60 * <int64_t> 1_000_000_000)


def _samples(shared):
    """The figures of a page without the first tenth, which warmed up; ns."""
    cdef shared_page *page = _page(shared)
    count = page.count
    found = np.empty(count, dtype=np.float64)
    for i in range(count):
        found[i] = page.samples[i]
    return found[count // 10:]


@contextmanager
def _pinned(int cpu):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def wake_up(int cpu_a, int cpu_b, double seconds=0.2):
    """One way of a ping-pong between two processes that both block: wake-up and switch, ns.

    Equal CPUs give the wake-up on one CPU, different ones across. Returns float64 samples, fewer
    on a busy machine.
    """
    shared = _Shared()
    cdef shared_page *page = _page(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with _child(shared, cpu_b, _answer_blocking), _pinned(cpu_a):
        with nogil:
            _block_ask(page, monotonic_now_ns() + budget_ns, monotonic_now_ns() + 3 * budget_ns)
    return _samples(shared)


def context_switch(int cpu, double seconds=0.2):
    """Handing a CPU to and fro between two processes by sched_yield, ns per switch."""
    shared = _Shared()
    cdef shared_page *page = _page(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with _child(shared, cpu, _answer_yielding), _pinned(cpu):
        with nogil:
            _yield_ask(page, monotonic_now_ns() + budget_ns, monotonic_now_ns() + 3 * budget_ns)
    return _samples(shared)


def interrupt_to_handler(int cpu_nic, int cpu_core, double seconds=0.2):
    """From raising on `cpu_nic` until the handler runs on `cpu_core`, where a rank burns, ns.

    The handler gets real-time priority where permitted. The two CPUs must differ: one that
    raises by itself would measure its own falling asleep.
    """
    if cpu_nic == cpu_core:
        raise ValueError("an interrupt is measured between two CPUs")
    shared, company = _Shared(), _Shared()
    cdef shared_page *page = _page(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with _child(company, cpu_core, _burner), _child(shared, cpu_core, _handler), _pinned(cpu_nic):
        with nogil:
            _interrupt(page, monotonic_now_ns() + budget_ns, monotonic_now_ns() + 3 * budget_ns)
    return _samples(shared)
