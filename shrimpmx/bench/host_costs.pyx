"""What this host charges for handing a CPU over: a wake-up, a context switch, a time slice."""

import numpy as np

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.bench.probe_processes cimport SAMPLES_MAX, block_until, keep, page_of, shared_page
from shrimpmx.native.atomics cimport cpu_pause, load_acquire_u32, store_release_u32
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.native.futex cimport wait_slot_wake

from shrimpmx.bench.probe_processes import Shared, child, pinned

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef enum:
    # Between two readings of the clock, another process had the CPU (ours).
    GAP_NS = 200_000
    # No probe lasts longer.
    LONGEST_NS = 60_000_000_000


cdef void _block_answer(shared_page *page, int64_t deadline_ns) noexcept nogil:
    cdef uint32_t turn = 1
    while block_until(page, 1, turn, deadline_ns):
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
        if not block_until(page, 0, turn, deadline_ns):
            return
        now_ns = monotonic_now_ns()
        keep(page, (now_ns - begin_ns) // 2)
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
        keep(page, (now_ns - begin_ns) // 2)
        begin_ns = now_ns


def _answer_blocking(shared):
    cdef shared_page *page = page_of(shared)
    with nogil:
        _block_answer(page, monotonic_now_ns() + LONGEST_NS)


def _answer_yielding(shared):
    cdef shared_page *page = page_of(shared)
    with nogil:
        _yield_answer(page, monotonic_now_ns() + LONGEST_NS)


def _spin(shared):
    cdef shared_page *page = page_of(shared)
    cdef int64_t deadline_ns = monotonic_now_ns() + LONGEST_NS
    with nogil:
        while not load_acquire_u32(&page.stop) and monotonic_now_ns() < deadline_ns:
            cpu_pause()


def wake_up(int cpu_a, int cpu_b, double seconds=0.2):
    """One way of a ping-pong between two processes that both block: wake-up and switch, ns.

    Equal CPUs give the wake-up on one CPU, different ones across. Returns float64 samples, fewer
    on a busy machine.
    """
    shared = Shared()
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with child(shared, cpu_b, _answer_blocking), pinned(cpu_a):
        with nogil:
            _block_ask(page, monotonic_now_ns() + budget_ns, monotonic_now_ns() + 3 * budget_ns)
    return shared.samples()


def context_switch(int cpu, double seconds=0.2):
    """Handing a CPU to and fro between two processes by sched_yield, ns per switch."""
    shared = Shared()
    cdef shared_page *page = page_of(shared)
    cdef int64_t budget_ns = <int64_t> (seconds * 1e9)
    with child(shared, cpu, _answer_yielding), pinned(cpu):
        with nogil:
            _yield_ask(page, monotonic_now_ns() + budget_ns, monotonic_now_ns() + 3 * budget_ns)
    return shared.samples()


def time_slices(int cpu, double seconds):
    """How long a process keeps its CPU while another one wants it, ns."""
    shared = Shared()
    cdef int64_t now_ns, before_ns, end_ns, began_ns = 0
    found = []
    with child(shared, cpu, _spin), pinned(cpu):
        before_ns = monotonic_now_ns()
        end_ns = before_ns + <int64_t>(seconds * 1e9)
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
