"""Patterns of messages between many ranks, for measuring simulations: ring, allreduce, alltoall.

The loops hold the GIL, as suits simulated hosts, where ranks are coroutines of one thread.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.types cimport STATUS_SUCCESS, MxPartner, MxRequest
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.wait.waiter cimport WAIT_READY
from shrimpmx.workloads.messages cimport (
    LOOP_DONE, LOOP_FAILED, LOOP_NO_MEMORY, LOOP_STOPPED, LoopFailure, LoopResult, check_loop,
    check_partner,
)


cdef uint64_t ALL_BITS = <uint64_t>-1


cdef LoopResult complete(Endpoint endpoint, MxRequest *request,
                         LoopFailure *failure) noexcept nogil:
    """Wait until a request is done, and give it back."""
    if endpoint.wait_c(request, NEVER_NS) != WAIT_READY:
        return LOOP_STOPPED
    failure.status = request.status
    endpoint.release_c(request)
    return LOOP_DONE if failure.status == STATUS_SUCCESS else LOOP_FAILED


cdef LoopResult swap(Endpoint endpoint, MxPartner *partner, const void *out, void *into,
                     uint32_t size_bytes, uint64_t match, LoopFailure *failure) noexcept nogil:
    """Send a message, and receive one of the same match."""
    cdef MxRequest *received = endpoint.irecv_c(into, size_bytes, match, ALL_BITS)
    cdef MxRequest *sent = endpoint.isend_c(partner, out, size_bytes, match)
    cdef LoopResult result
    failure.message = match
    if received == NULL or sent == NULL:
        return LOOP_NO_MEMORY
    endpoint.doorbell_c()
    result = complete(endpoint, received, failure)
    return complete(endpoint, sent, failure) if result == LOOP_DONE else result


def ring(Endpoint endpoint not None, Partner right not None, uint32_t size_bytes,
         uint32_t rounds) -> None:
    """Send `rounds` messages of `size_bytes` to the next rank, and receive one after each.

    Raises MxError if a message is lost, AbortedError if the run is stopped.
    """
    cdef uint8_t[::1] out = np.zeros(size_bytes + 1, np.uint8)
    cdef uint8_t[::1] into = np.zeros(size_bytes + 1, np.uint8)
    cdef LoopFailure failure
    cdef LoopResult result = LOOP_DONE
    cdef uint64_t turn
    check_partner(endpoint, right)
    for turn in range(rounds):
        result = swap(endpoint, right.partner, &out[0], &into[0], size_bytes, turn, &failure)
        if result != LOOP_DONE:
            break
    check_loop(endpoint, result, &failure, (out, into))


def allreduce(Endpoint endpoint not None, list partners not None, uint32_t size_bytes,
              uint32_t rounds, int64_t own):
    """Recursive doubling: exchange sums with each partner in turn; `rounds` times from the start.

    A message has `size_bytes` of sums, whole words of 8 bytes, all of the ranks' numbers; `own` is
    the caller's. Returns the sum. Raises as `ring` does.
    """
    cdef uint32_t words = max(1, size_bytes // 8), word
    cdef int64_t[::1] total = np.zeros(words, np.int64)
    cdef int64_t[::1] into = np.zeros(words, np.int64)
    cdef LoopFailure failure
    cdef LoopResult result = LOOP_DONE
    cdef uint64_t match
    cdef Partner partner
    for partner in partners:
        check_partner(endpoint, partner)
    for match in range(<uint64_t>rounds * len(partners)):
        if match % len(partners) == 0:
            total[:] = own
        partner = partners[match % len(partners)]
        result = swap(endpoint, partner.partner, &total[0], &into[0], 8 * words, match, &failure)
        if result != LOOP_DONE:
            break
        for word in range(words):
            total[word] += into[word]
    check_loop(endpoint, result, &failure, (total, into))
    return total[0] if rounds * len(partners) != 0 else own


def alltoall(Endpoint endpoint not None, list partners not None, uint32_t number,
             uint32_t size_bytes, uint32_t rounds) -> None:
    """Rank `number` sends a message to each partner, and receives one of each other rank.

    Partner s - 1 is the rank s further on. Raises as `ring` does.
    """
    cdef uint32_t size = len(partners) + 1, other
    cdef uint8_t[::1] out = np.zeros(size_bytes + 1, np.uint8)
    cdef uint8_t[::1] into = np.zeros(<uint64_t>size * size_bytes + 1, np.uint8)
    cdef MxRequest **requests
    cdef LoopFailure failure
    cdef LoopResult result = LOOP_DONE
    cdef uint64_t turn
    cdef Partner partner
    for partner in partners:
        check_partner(endpoint, partner)
    requests = <MxRequest **>calloc(2 * size, sizeof(MxRequest *))
    if requests == NULL:
        raise MemoryError
    for turn in range(rounds):
        failure.message = turn
        for other in range(size):
            if other != number:
                requests[size + other] = endpoint.irecv_c(
                    &into[other * size_bytes], size_bytes, turn * size + other, ALL_BITS)
        for other in range(size - 1):
            partner = partners[other]
            requests[other] = endpoint.isend_c(
                partner.partner, &out[0], size_bytes, turn * size + number)
            endpoint.doorbell_c()
        for other in range(2 * size):
            if other == size - 1 or other == size + number:
                continue
            if requests[other] == NULL:
                result = LOOP_NO_MEMORY
            elif result == LOOP_DONE:
                result = complete(endpoint, requests[other], &failure)
        if result != LOOP_DONE:
            break
    free(requests)
    check_loop(endpoint, result, &failure, (out, into))
