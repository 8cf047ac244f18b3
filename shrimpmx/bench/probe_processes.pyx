"""The processes of a probe: a parent and a child, pinned, over one page of shared memory.

A child has begun, with its place and its priority, before anything is measured: on a busy machine
that alone takes longer than a short measurement. Every loop has a deadline, so that such a machine
gives fewer samples instead of none for ever.
"""

import mmap
import os
import signal
import time
from contextlib import contextmanager

import numpy as np

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native import cores
from shrimpmx.native.atomics cimport load_acquire_u32, store_release_u32
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.native.futex cimport (
    wait_slot_arm, wait_slot_disarm, wait_slot_sleep, wait_slot_wake,
)

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
