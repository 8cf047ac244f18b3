"""Ping-pong over SHRIMP's base library: two processes write each other's flag in turn.

The waiting paper's micro-benchmark (5.1, Figures 2 and 3): one word, no library above virtual
memory-mapped communication, computing before each send.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

import numpy as np

from shrimpmx.workloads.delays cimport Delays, delays_between, next_delay_ns
from shrimpmx.workloads.vmmc_peer cimport PEER_DONE, PEER_STOPPED, Peer, PeerResult

from shrimpmx.errors import InputError

cdef enum:
    FLAG = 0                 # where the flag lies


def pingpong(Peer peer not None, bint initiator, uint32_t iterations, uint32_t warmup,
             int64_t delay_ns=0, int64_t delay_max_ns=0, uint64_t seed=1):
    """Exchange `warmup` + `iterations` words with `peer`, which was made with its defaults.

    Before each send a rank computes for `delay_ns`, or if `delay_max_ns` is not 0 for a time drawn
    evenly between the two from `seed`. That delay uses its CPU: time during which it is preempted
    does not count. The clock that it looks at all the while is part of it, as those of the paper's
    delay loop were, and belongs to the user time that `spin` shows.

    Returns half the round trip of each iteration behind the warm-up, ns (int64, one per
    iteration; one delay is in it). The rank that is not the initiator measures from send to send.
    Raises VmmcError if the peer closes or a word is not the next one, AbortedError if the run is
    stopped.
    """
    cdef Delays delays
    cdef int64_t[::1] samples
    cdef uint64_t number = 0
    cdef PeerResult result
    if iterations == 0:
        raise InputError("a ping-pong needs at least one iteration")
    delays_between(&delays, delay_ns, delay_max_ns, seed)
    measured = np.zeros(warmup + iterations, dtype=np.int64)
    samples = measured
    with nogil:
        if initiator:
            result = initiate(peer, &delays, samples, &number)
        else:
            result = respond(peer, &delays, samples, &number)
    peer.check(result, number)
    return measured[warmup:] // 2


cdef PeerResult initiate(Peer peer, Delays *delays, int64_t[::1] samples,
                         uint64_t *number) noexcept nogil:
    cdef int64_t start_ns
    cdef uint32_t word
    cdef PeerResult result
    for word in range(1, <uint32_t>samples.shape[0] + 1):
        number[0] = word - 1
        start_ns = peer.host.now_c()
        if not peer.host.burn_c(next_delay_ns(delays)):
            return PEER_STOPPED
        result = peer.set_flag_c(FLAG, word)
        if result == PEER_DONE:
            result = peer.expect_c(word)
        if result != PEER_DONE:
            return result
        samples[word - 1] = peer.host.now_c() - start_ns
    return PEER_DONE


cdef PeerResult respond(Peer peer, Delays *delays, int64_t[::1] samples,
                        uint64_t *number) noexcept nogil:
    cdef int64_t now_ns
    cdef int64_t before_ns = peer.host.now_c()
    cdef uint32_t word
    cdef PeerResult result
    for word in range(1, <uint32_t>samples.shape[0] + 1):
        number[0] = word - 1
        result = peer.expect_c(word)
        if result != PEER_DONE:
            return result
        if not peer.host.burn_c(next_delay_ns(delays)):
            return PEER_STOPPED
        result = peer.set_flag_c(FLAG, word)
        if result != PEER_DONE:
            return result
        now_ns = peer.host.now_c()
        samples[word - 1] = now_ns - before_ns
        before_ns = now_ns
    return PEER_DONE
