"""Waits of known length, each with what it cost: for competitive analysis (waiting paper, 3.2).

The waiter tells the sender when it begins to wait; the sender looks at the clock until the drawn
arrival delay has passed since then, and sends. So the delay is known, and does not depend on how
the waiter waits.
"""

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.atomics cimport load_acquire_u64, load_relaxed_u32
from shrimpmx.workloads.messages cimport Delays, delays_arriving, next_delay_ns
from shrimpmx.workloads.vmmc_pingpong cimport PEER_DONE, PEER_STOPPED, Peer, PeerResult

from shrimpmx.errors import InputError

cdef enum:
    FLAG = 0                 # where the flag lies
    TIME = 64                # and the time that it announces: int64_t, run clock
    COST_READINGS = 1000     # of the CPU clock, to find what a pair of them costs

cdef struct Recording:
    int64_t *arrival_ns
    int64_t *cpu_ns


def send_arrivals(Peer peer not None, str arrivals not None, int64_t mean_ns, int64_t limit_ns,
                  uint32_t count, uint64_t seed=1):
    """Send `count` words to `peer`, which was made with its defaults, each a drawn delay after it
    has begun to wait.

    `arrivals`, `mean_ns` and `limit_ns` say how the delays are distributed: draw_arrivals(). Raises
    as pingpong() does.
    """
    cdef Delays delays
    cdef uint64_t number = 0
    cdef PeerResult result
    delays_arriving(&delays, arrivals, mean_ns, limit_ns, seed)
    with nogil:
        result = send_all(peer, &delays, count, &number)
    peer.check(result, number)


def await_arrivals(Peer peer not None, uint32_t iterations, uint32_t warmup):
    """Wait for `warmup` + `iterations` words of `peer`, which is told when each wait begins.

    Returns two arrays (int64, ns, one entry per wait behind the warm-up): "arrival_ns", from the
    beginning of a wait until its word was really sent; "wait_cpu_ns", CPU time of this process in
    the wait, its system calls included, less what it takes to read that. Raises as pingpong() does.
    """
    cdef int64_t[:, ::1] figures
    cdef Recording recording
    cdef uint64_t number = 0
    cdef uint32_t count = warmup + iterations
    cdef int64_t cost_ns
    cdef PeerResult result
    if iterations == 0:
        raise InputError("there must be at least one arrival")
    measured = np.zeros((2, count), dtype=np.int64)
    figures = measured
    recording.arrival_ns = &figures[0, 0]
    recording.cpu_ns = &figures[1, 0]
    with nogil:
        cost_ns = reading_cost_ns(peer)
        result = await_all(peer, &recording, count, cost_ns, &number)
    peer.check(result, number)
    names = ("arrival_ns", "wait_cpu_ns")
    return {name: row[warmup:] for name, row in zip(names, measured, strict=True)}


cdef int64_t reading_cost_ns(Peer peer) noexcept nogil:
    """What two readings in a row differ by, at least."""
    cdef int64_t before_ns, step_ns
    cdef int64_t least_ns = 1_000_000
    cdef int _reading
    for _reading in range(COST_READINGS):
        before_ns = peer.host.cpu_ns()
        step_ns = peer.host.cpu_ns() - before_ns
        least_ns = min(least_ns, step_ns)
    return least_ns


cdef PeerResult announce(Peer peer, uint32_t word, int64_t time_ns) noexcept nogil:
    """Tells the peer a time, and then sets its flag."""
    cdef PeerResult result = peer.put_c(TIME, &time_ns, sizeof(time_ns))
    return peer.set_flag_c(FLAG, word) if result == PEER_DONE else result


cdef inline int64_t announced_ns(Peer peer) noexcept nogil:
    return <int64_t>load_acquire_u64(<const uint64_t *>(peer.memory + TIME))


cdef PeerResult send_all(Peer peer, Delays *delays, uint32_t count,
                         uint64_t *number) noexcept nogil:
    cdef int64_t due_ns, now_ns
    cdef uint32_t word
    cdef PeerResult result
    for word in range(1, count + 1):
        number[0] = word - 1
        result = peer.expect_c(word)
        if result != PEER_DONE:
            return result
        due_ns = announced_ns(peer) + next_delay_ns(delays)
        now_ns = peer.host.now_c()
        while now_ns < due_ns:
            if load_relaxed_u32(<const void *>&peer.process.control.header.stop) != 0:
                return PEER_STOPPED
            if not peer.host.pause(due_ns):
                return PEER_STOPPED
            now_ns = peer.host.now_c()
        result = announce(peer, word, now_ns)
        if result != PEER_DONE:
            return result
    return PEER_DONE


cdef PeerResult await_all(Peer peer, Recording *recording, uint32_t count, int64_t cost_ns,
                          uint64_t *number) noexcept nogil:
    cdef int64_t begin_ns, cpu_ns
    cdef uint32_t word
    cdef PeerResult result
    for word in range(1, count + 1):
        number[0] = word - 1
        begin_ns = peer.host.now_c()
        result = announce(peer, word, begin_ns)
        if result != PEER_DONE:
            return result
        cpu_ns = peer.host.cpu_ns()
        result = peer.expect_c(word)
        cpu_ns = peer.host.cpu_ns() - cpu_ns - cost_ns
        if result != PEER_DONE:
            return result
        recording.arrival_ns[word - 1] = announced_ns(peer) - begin_ns
        recording.cpu_ns[word - 1] = max(cpu_ns, <int64_t>0)
    return PEER_DONE
