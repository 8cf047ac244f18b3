"""Ping-pong: two ranks send one message back and forth.

The basic measurement of all three papers; `delay_ns` is the computation before each
send of the waiting paper's section 5.1.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.types cimport STATUS_SUCCESS, MxPartner, MxRequest
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.wait.strategy cimport WAIT_READY, WAIT_TIMED_OUT, WaitResult
from shrimpmx.workloads.common cimport (
    LOOP_CORRUPT, LOOP_DONE, LOOP_FAILED, LOOP_NO_MEMORY, LOOP_STOPPED, LoopFailure, LoopResult,
    check_loop, check_partner, make_buffers, stamp, stamped, wait_for_message,
)

from shrimpmx.errors import InputError

cdef enum:
    PINGPONG_MATCH = 0x70696E67

cdef struct Exchange:
    MxPartner *partner
    uint8_t *outgoing
    uint8_t *incoming        # two buffers, used in turn
    uint32_t size_bytes
    int64_t delay_ns
    MxRequest *receive       # posted for the next message
    int64_t before_ns        # the responder's last reply
    LoopFailure failure


def pingpong(Endpoint endpoint not None, Partner partner not None, bint initiator,
             uint32_t size_bytes, uint32_t iterations, uint32_t warmup, int64_t delay_ns=0,
             move=None, uint64_t move_every=0):
    """Exchange `warmup` + `iterations` messages of `size_bytes` with `partner`.

    After each `move_every` round trips but the last `move()` is called (0: never). Returns half the
    round trip of each iteration after the warm-up, ns (int64, one per iteration; it contains
    `delay_ns` once). The rank that is not the initiator measures from reply to reply. A sample
    after a move contains the other rank's move, the responder's also its own.
    Raises MxError if a message is lost or damaged, AbortedError if the run is stopped.
    """
    cdef Exchange exchange
    cdef uint8_t[::1] outgoing, incoming
    cdef int64_t[::1] samples
    cdef uint64_t first, last, total
    cdef LoopResult result = LOOP_DONE
    check_partner(endpoint, partner)
    if iterations == 0:
        raise InputError("a ping-pong needs at least one iteration")
    outgoing = make_buffers(size_bytes, 1)
    incoming = make_buffers(size_bytes, 2)
    measured = np.zeros(warmup + iterations, dtype=np.int64)
    samples = measured
    exchange.partner = partner.partner
    exchange.outgoing = &outgoing[0]
    exchange.incoming = &incoming[0]
    exchange.size_bytes = size_bytes
    exchange.delay_ns = delay_ns
    exchange.receive = NULL
    total = <uint64_t>samples.shape[0]
    first = 0
    if move is None or move_every == 0:
        move_every = total
    while first < total:
        if first > 0:
            make_move(endpoint, move, (outgoing, incoming))
        last = min(total, first + move_every)
        with nogil:
            if initiator:
                result = initiate(endpoint, &exchange, samples, first, last)
            else:
                result = respond(endpoint, &exchange, samples, first, last)
        check_loop(endpoint, result, &exchange.failure, (outgoing, incoming))
        first = last
    return measured[warmup:] // 2


cdef int make_move(Endpoint endpoint, object move, object buffers) except -1:
    try:
        move()
    except BaseException:
        # A receive that is posted may still write to them.
        endpoint.library.abandoned.append(buffers)
        raise
    return 0


cdef inline bint post(Endpoint endpoint, Exchange *exchange, uint64_t number) noexcept nogil:
    cdef uint8_t *buffer = exchange.incoming + (number & 1) * exchange.size_bytes
    exchange.receive = endpoint.irecv_c(
        buffer, exchange.size_bytes, PINGPONG_MATCH, <uint64_t>-1)
    return exchange.receive != NULL


cdef inline LoopResult await_message(Endpoint endpoint, Exchange *exchange) noexcept nogil:
    cdef MxRequest *receive = exchange.receive
    cdef WaitResult result = wait_for_message(
        endpoint, exchange.partner, receive, &exchange.failure.status)
    if result != WAIT_READY:
        return LOOP_FAILED if result == WAIT_TIMED_OUT else LOOP_STOPPED
    exchange.failure.status = receive.status
    endpoint.release_c(receive)
    return LOOP_DONE if exchange.failure.status == STATUS_SUCCESS else LOOP_FAILED


cdef inline LoopResult send(Endpoint endpoint, Exchange *exchange) noexcept nogil:
    """Sends and completes: nearly always at once, before it is acknowledged."""
    cdef MxRequest *request = endpoint.isend_c(
        exchange.partner, exchange.outgoing, exchange.size_bytes, PINGPONG_MATCH)
    if request == NULL:
        return LOOP_NO_MEMORY
    endpoint.doorbell_c()
    if endpoint.wait_c(request, NEVER_NS) != WAIT_READY:
        return LOOP_STOPPED
    exchange.failure.status = request.status
    endpoint.release_c(request)
    return LOOP_DONE if exchange.failure.status == STATUS_SUCCESS else LOOP_FAILED


cdef inline bint intact(Exchange *exchange, uint64_t number) noexcept nogil:
    return stamped(
        exchange.incoming + (number & 1) * exchange.size_bytes, exchange.size_bytes, number)


cdef LoopResult initiate(Endpoint endpoint, Exchange *exchange, int64_t[::1] samples,
                         uint64_t first, uint64_t last) noexcept nogil:
    """The round trips from `first` on, `last` excluded."""
    cdef uint64_t number
    cdef int64_t start_ns
    cdef LoopResult result
    for number in range(first, last):
        exchange.failure.message = number
        stamp(exchange.outgoing, exchange.size_bytes, number)
        if not post(endpoint, exchange, number):
            return LOOP_NO_MEMORY
        start_ns = endpoint.host.now_c()
        if not endpoint.host.burn_c(exchange.delay_ns):
            return LOOP_STOPPED
        result = send(endpoint, exchange)
        if result == LOOP_DONE:
            result = await_message(endpoint, exchange)
        if result != LOOP_DONE:
            return result
        samples[number] = endpoint.host.now_c() - start_ns
        if not intact(exchange, number):
            return LOOP_CORRUPT
    if last == <uint64_t>samples.shape[0]:
        endpoint.flush_c()
    return LOOP_DONE


cdef LoopResult respond(Endpoint endpoint, Exchange *exchange, int64_t[::1] samples,
                        uint64_t first, uint64_t last) noexcept nogil:
    """The same. A receive is posted ahead, so that it is there for the next round trip, too."""
    cdef uint64_t number
    cdef uint64_t count = <uint64_t>samples.shape[0]
    cdef int64_t now_ns
    cdef LoopResult result
    if first == 0:
        exchange.before_ns = endpoint.host.now_c()
        if not post(endpoint, exchange, 0):
            return LOOP_NO_MEMORY
    for number in range(first, last):
        exchange.failure.message = number
        stamp(exchange.outgoing, exchange.size_bytes, number)
        result = await_message(endpoint, exchange)
        if result != LOOP_DONE:
            return result
        if number + 1 < count and not post(endpoint, exchange, number + 1):
            return LOOP_NO_MEMORY
        if not endpoint.host.burn_c(exchange.delay_ns):
            return LOOP_STOPPED
        result = send(endpoint, exchange)
        if result != LOOP_DONE:
            return result
        now_ns = endpoint.host.now_c()
        samples[number] = now_ns - exchange.before_ns
        exchange.before_ns = now_ns
        if not intact(exchange, number):
            return LOOP_CORRUPT
    return LOOP_DONE
