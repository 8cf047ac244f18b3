"""Waiting for any one of many flags: what a sockets library does with each `select`.

The waiting paper's mechanism serves any of a set of flags (2.2, section 4). One process writes a
flag that is drawn anew each time, the other waits for all of them and answers.
"""

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.random cimport random_bits, random_state
from shrimpmx.workloads.vmmc_pingpong cimport (
    PEER_CORRUPT, PEER_DONE, PEER_STOPPED, Peer, PeerResult,
)

from shrimpmx.errors import InputError

cdef enum:
    PAGE_BYTES = 4096
    # Pages that the flags are spread over, of the 59 that a wait can watch (ours).
    PAGES = 32
    # Flags of a page lie at least so far apart, bytes: PAGES * PAGE_BYTES / 4096 of them (ours).
    SPACING_BYTES = 32
    ANSWER = 0               # where the answer's flag lies

# What the flags take of the memory that they lie in.
FLAGS_BYTES = PAGES * PAGE_BYTES


def flag_offsets(count: int) -> list[int]:
    """Where `count` flags lie: in turn on each page, as far apart on it as they can."""
    if not 0 < count <= PAGES * (PAGE_BYTES // SPACING_BYTES):
        raise InputError(
            f"there can be 1 to {PAGES * (PAGE_BYTES // SPACING_BYTES)} flags, not {count}")
    pages = min(count, PAGES)
    spacing = PAGE_BYTES // -(-count // pages) // SPACING_BYTES * SPACING_BYTES
    return [number % pages * PAGE_BYTES + number // pages * spacing for number in range(count)]


def any_of_flags(Peer peer not None, bint initiator, uint32_t count, uint32_t iterations,
                 uint32_t warmup, int64_t delay_ns=0, uint64_t seed=1):
    """Play `warmup` + `iterations` rounds with `peer`.

    The initiator computes for `delay_ns` and writes one of the other's `count` flags, drawn from
    `seed`, which both have; the other, whose `peer` was made with FLAGS_BYTES and flag_offsets(),
    waits for all of them, checks that this one has changed and no other, and answers.

    Returns three arrays (int64): "half_round_trip_ns", one per round behind the warm-up; "waits",
    how often this process has waited; "wrong_flags", how many of these waits ended without the flag
    that was written or with another one. Raises as pingpong() does.
    """
    cdef int64_t[::1] samples
    cdef uint64_t[::1] places
    cdef uint64_t number = 0
    cdef PeerResult result
    if iterations == 0:
        raise InputError("at least one round trip is needed")
    measured = np.zeros(warmup + iterations, dtype=np.int64)
    samples = measured
    places = np.array(flag_offsets(count), dtype=np.uint64)
    with nogil:
        if initiator:
            result = initiate(peer, places, samples, delay_ns, seed, &number)
        else:
            result = respond(peer, samples, seed, &number)
    peer.check(result, number)
    return {
        "half_round_trip_ns": measured[warmup:] // 2,
        "waits": np.array([peer.waits]),
        "wrong_flags": np.array([peer.spurious]),
    }


cdef PeerResult initiate(Peer peer, uint64_t[::1] places, int64_t[::1] samples, int64_t delay_ns,
                         uint64_t seed, uint64_t *number) noexcept nogil:
    cdef uint64_t state = random_state(seed)
    cdef uint64_t place
    cdef int64_t start_ns
    cdef uint32_t word
    cdef PeerResult result
    for word in range(1, <uint32_t>samples.shape[0] + 1):
        number[0] = word - 1
        place = places[random_bits(&state) % <uint64_t>places.shape[0]]
        start_ns = peer.host.now_c()
        if not peer.host.burn_c(delay_ns):
            return PEER_STOPPED
        result = peer.set_flag_c(place, word)
        if result == PEER_DONE:
            result = peer.expect_c(word)
        if result != PEER_DONE:
            return result
        samples[word - 1] = peer.host.now_c() - start_ns
    return PEER_DONE


cdef PeerResult respond(Peer peer, int64_t[::1] samples, uint64_t seed,
                        uint64_t *number) noexcept nogil:
    cdef uint64_t state = random_state(seed)
    cdef int64_t now_ns
    cdef int64_t before_ns = peer.host.now_c()
    cdef uint32_t word
    cdef PeerResult result
    for word in range(1, <uint32_t>samples.shape[0] + 1):
        number[0] = word - 1
        result = await_flag(peer, <uint32_t>(random_bits(&state) % peer.flags_count), word)
        if result == PEER_DONE:
            result = peer.set_flag_c(ANSWER, word)
        if result != PEER_DONE:
            return result
        now_ns = peer.host.now_c()
        samples[word - 1] = now_ns - before_ns
        before_ns = now_ns
    return PEER_DONE


cdef PeerResult await_flag(Peer peer, uint32_t wanted, uint32_t word) noexcept nogil:
    """Waits until flag `wanted` has become `word`; any other that changes is spurious."""
    cdef uint32_t index, value
    cdef bint there = False, others = False
    cdef PeerResult result
    while not there:
        result = peer.wait_c()
        if result != PEER_DONE:
            return result
        others = False
        for index in range(peer.flags_count):
            value = load_acquire_u32(peer.watches[index].address)
            if value == peer.watches[index].seen:
                continue
            peer.watches[index].seen = value
            if index != wanted:
                others = True
            elif value != word:
                return PEER_CORRUPT
            else:
                there = True
        peer.spurious += others
    return PEER_DONE
