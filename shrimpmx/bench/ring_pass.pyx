"""What passing one cache line through a ring costs: two pinned threads, one ring, 64-byte slots."""

import os
import threading

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.native.atomics cimport cpu_pause, prefetch_read, prefetch_write
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.native.ring cimport (
    RING_HEADER_BYTES, ring, ring_available, ring_consume, ring_fill, ring_free, ring_initialise,
    ring_next, ring_publish, ring_slot,
)

# A NIC publishes a batch and a handler takes one; 32 is the firmware's pass over a tx ring.
cdef enum:
    ENTRIES = 1024
    SLOT_BYTES = 64
    BATCH = 32  # slots
    AHEAD = 8  # a slot's line takes as long to come as eight slots take to use
    SPINS_PER_CLOCK = 1024


cdef bint _expired(uint32_t *turns, int64_t deadline_ns) noexcept nogil:
    turns[0] += 1
    return turns[0] % SPINS_PER_CLOCK == 0 and monotonic_now_ns() > deadline_ns


cdef uint64_t _produce(ring *r, uint64_t count, int64_t deadline_ns) noexcept nogil:
    cdef uint64_t sent = 0
    cdef uint32_t turns = 0
    cdef uint32_t room, i
    cdef uint64_t[8] line
    for i in range(8):
        line[i] = i
    while sent < count:
        room = ring_free(r, BATCH)
        if room < BATCH:
            cpu_pause()
            if _expired(&turns, deadline_ns):
                break
            continue
        for _ in range(BATCH):
            line[0] = sent
            memcpy(ring_next(r), line, SLOT_BYTES)
            prefetch_write(ring_slot(r, r.reserved + BATCH))
            ring_fill(r)
            sent += 1
        ring_publish(r)
    return sent


cdef uint64_t _consume(ring *r, uint64_t taken, uint64_t count, int64_t deadline_ns,
                       bint *intact) noexcept nogil:
    cdef uint32_t turns = 0
    cdef uint32_t available, i
    cdef uint64_t *line
    while taken < count:
        available = ring_available(r, 1)
        if available == 0:
            cpu_pause()
            if _expired(&turns, deadline_ns):
                break
            continue
        for i in range(available):
            if i + AHEAD < available:  # further ahead would take lines that are being filled
                prefetch_read(ring_slot(r, r.tail + i + AHEAD))
            line = <uint64_t *>ring_slot(r, r.tail + i)
            if line[0] != taken or line[7] != 7:
                intact[0] = False
            taken += 1
        ring_consume(r, available)
    return taken


def ring_pass(int cpu_a, int cpu_b, uint64_t count=200_000, double limit_s=2.0):
    """Nanoseconds per 64-byte slot, streamed from `cpu_a` to `cpu_b` in batches of 32.

    Returns None if the two CPUs did not get the `count` slots (a multiple of 32) across within
    `limit_s` seconds. The caller's affinity is restored. Raises RuntimeError if a slot arrived
    changed or out of order: the ring is broken.
    """
    memory = np.zeros(RING_HEADER_BYTES + ENTRIES * SLOT_BYTES + 64, dtype=np.uint8)
    cdef size_t address = (<size_t>memory.ctypes.data + 63) // 64 * 64
    cdef ring *r = <ring *>address
    cdef bint intact = True
    cdef int64_t deadline_ns = monotonic_now_ns() + <int64_t>(limit_s * 1e9)
    cdef int64_t begin_ns, end_ns
    cdef uint64_t warm, taken
    ring_initialise(r, ENTRIES, SLOT_BYTES, RING_HEADER_BYTES)

    def produce():
        os.sched_setaffinity(0, {cpu_a})
        with nogil:
            _produce(r, count, deadline_ns)

    before = os.sched_getaffinity(0)
    thread = threading.Thread(target=produce, name="ring producer")
    os.sched_setaffinity(0, {cpu_b})
    try:
        thread.start()
        with nogil:
            warm = _consume(r, 0, BATCH, deadline_ns, &intact)  # the thread's start is not timed
            begin_ns = monotonic_now_ns()
            taken = _consume(r, warm, count, deadline_ns, &intact)
            end_ns = monotonic_now_ns()
        thread.join()
    finally:
        os.sched_setaffinity(0, before)
    if not intact:
        raise RuntimeError("a ring slot arrived changed or out of order")
    return (end_ns - begin_ns) / (taken - warm) if taken >= count else None
