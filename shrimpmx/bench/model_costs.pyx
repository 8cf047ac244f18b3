"""What a process of a host takes that does not hand its CPU over: looks, yields, copies."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from shrimpmx.native.atomics cimport cpu_pause, load_acquire_u32
from shrimpmx.native.clock cimport monotonic_now_ns

from shrimpmx.bench.probe_processes import pinned

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

cdef enum:
    BATCH = 1000
    COPY_BYTES = 4096
    COPIED_BYTES = 4 << 20


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


def copies(int cpu, double seconds):
    """A copy of 4 KiB between two buffers of 4 MiB, ns, each the mean of a whole one."""
    cdef uint8_t[::1] source = np.ones(COPIED_BYTES, dtype=np.uint8)
    cdef uint8_t[::1] target = np.zeros(COPIED_BYTES, dtype=np.uint8)
    cdef int64_t begin_ns, now_ns, end_ns
    cdef size_t at
    found = []
    with pinned(cpu):
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
