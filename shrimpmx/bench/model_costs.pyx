"""What a process takes of a host that keeps its CPU: looks, yields, signals, copies."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset
from posix.signal cimport kill
from posix.types cimport pid_t
from posix.unistd cimport getpid

from shrimpmx.bench.cold cimport ELSEWHERE_BYTES, fill_caches
from shrimpmx.native.atomics cimport cpu_pause, load_acquire_u32
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.native.notify cimport notify_install, notify_remove, notify_set_slot

from shrimpmx.bench.probe_processes import pinned
from shrimpmx.native.notify import default_signal

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef enum:
    BATCH = 1000
    # So many frames are copied one behind the other, into the slots of a ring.
    FRAME_BYTES = 1500
    FRAMES = 16
    SLOT_BYTES = 2048
    SLOTS = 1024


def looks(int cpu, double seconds):
    """One look of a spinning process and its pause, ns, each the mean of 1000."""
    cdef uint32_t flag = 0
    cdef int64_t begin_ns, now_ns, end_ns
    found = []
    with pinned(cpu):
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
    with pinned(cpu):
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


cdef int64_t _kills(pid_t process, int number) noexcept nogil:
    """ns that a batch of calls takes."""
    cdef int64_t begin_ns = monotonic_now_ns()
    for _ in range(BATCH):
        kill(process, number)
    return monotonic_now_ns() - begin_ns


def signals(int cpu, double seconds):
    """A signal's way to the handler of a notification and back, ns, each the mean of 1000: by how
    much it makes a call longer that sends it to its own process. The handler wakes sleepers, of
    which there are none.
    """
    cdef wait_slot slot
    cdef int64_t with_ns, without_ns, end_ns
    cdef pid_t process = getpid()
    cdef int number = default_signal()
    found = []
    with pinned(cpu):
        end_ns = monotonic_now_ns() + <int64_t>(seconds * 1e9)
        memset(&slot, 0, sizeof(slot))
        notify_install(number)
        notify_set_slot(&slot)
        try:
            while not found or monotonic_now_ns() < end_ns:
                with nogil:
                    without_ns = _kills(process, 0)
                    with_ns = _kills(process, number)
                found.append((with_ns - without_ns) / <double>BATCH)
        finally:
            notify_set_slot(NULL)
            notify_remove()
    return np.array(found)


def copies(int cpu, double seconds):
    """A copy of 1500 bytes that were just written into a ring that something else has driven from
    the caches, ns, each the mean of 16.
    """
    cdef uint8_t[::1] source = np.zeros(FRAMES * SLOT_BYTES, dtype=np.uint8)
    cdef uint8_t[::1] target = np.zeros(SLOTS * SLOT_BYTES, dtype=np.uint8)
    cdef uint8_t[::1] elsewhere = np.zeros(ELSEWHERE_BYTES, dtype=np.uint8)
    cdef int64_t begin_ns, now_ns, end_ns
    cdef size_t frame, slot = 0
    found = []
    with pinned(cpu):
        now_ns = monotonic_now_ns()
        end_ns = now_ns + <int64_t>(seconds * 1e9)
        while not found or now_ns < end_ns:
            with nogil:
                fill_caches(elsewhere)
                memset(&source[0], 1, FRAMES * SLOT_BYTES)
                begin_ns = monotonic_now_ns()
                for frame in range(<size_t>FRAMES):
                    memcpy(&target[slot * SLOT_BYTES], &source[frame * SLOT_BYTES], FRAME_BYTES)
                    slot = (slot + 1) % SLOTS
                now_ns = monotonic_now_ns()
            found.append((now_ns - begin_ns) / <double>FRAMES)
    return np.array(found)
