"""What a process takes of a host that keeps its CPU: looks, yields, signals."""

import numpy as np

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset
from posix.signal cimport kill
from posix.types cimport pid_t
from posix.unistd cimport getpid

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
