"""A one-way stream of messages, for message rates (coalescing paper, IV-B)."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.types cimport REQUEST_RECEIVE, STATUS_SUCCESS, MxPartner, MxRequest
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.wait.strategy cimport WAIT_READY, WAIT_TIMED_OUT, WaitResult
from shrimpmx.workloads.common cimport (
    LOOP_CORRUPT, LOOP_DONE, LOOP_FAILED, LOOP_NO_MEMORY, LOOP_STOPPED, LoopFailure, LoopResult,
    check_loop, check_partner, make_buffers, stamp, stamped, wait_for_message,
)

from shrimpmx.errors import InputError

cdef uint64_t ANY_BITS = <uint64_t>-1

cdef enum:
    # Sends between two rings of the doorbell and looks for acknowledgements (ours).
    SEND_BATCH = 16
    # Time stamps that a receiver takes over its whole stream.
    STAMPS = 100

cdef struct Stream:
    MxPartner *partner
    MxRequest **requests     # `window` of them, by message number modulo window
    uint8_t *buffers         # as many messages
    uint64_t match
    uint64_t count
    uint32_t size_bytes
    uint32_t window
    uint32_t batch           # messages between two time stamps
    bint verify
    int64_t started_ns
    int64_t ended_ns
    LoopFailure failure


def send_stream(Endpoint endpoint not None, Partner partner not None, uint32_t size_bytes,
                uint64_t count, uint32_t window=64, uint64_t match=0):
    """Send `count` messages of `size_bytes`, at most `window` of them not completed.

    Returns {"elapsed_ns": from the first send until all are acknowledged, "count",
    "started_ns": the run's time at the first send}.
    """
    cdef Stream stream
    cdef LoopResult result
    cdef uint8_t[::1] buffers
    check_partner(endpoint, partner)
    buffers = open_stream(&stream, size_bytes, count, window, match)
    stream.buffers = &buffers[0]
    stream.partner = partner.partner
    try:
        stream.started_ns = endpoint.host.now_c()
        with nogil:
            result = send_all(endpoint, &stream)
        check_loop(endpoint, result, &stream.failure, buffers)
        endpoint.drain()
    finally:
        free(stream.requests)
    return {
        "elapsed_ns": endpoint.host.now_c() - stream.started_ns,
        "count": count,
        "started_ns": stream.started_ns,
    }


def receive_stream(Endpoint endpoint not None, uint32_t size_bytes, uint64_t count,
                   uint32_t window=64, uint64_t match=0, bint verify=True,
                   Partner partner=None):
    """Receive `count` messages of at most `size_bytes`, `window` receives posted ahead.

    Returns {"elapsed_ns": from the first message's completion to the last's, "count",
    "batch": messages between two time stamps, "timestamps_ns": int64, one at the first
    message and one after each batch}. `verify` checks that `send_stream` sent them.
    MxError if `partner`, the source of all of them, dies; without it no death is noticed.
    """
    cdef Stream stream
    cdef LoopResult result
    cdef uint8_t[::1] buffers
    cdef int64_t[::1] stamps
    endpoint.check_open()
    if partner is not None:
        check_partner(endpoint, partner)
    buffers = open_stream(&stream, size_bytes, count, window, match)
    stream.buffers = &buffers[0]
    stream.partner = NULL if partner is None else partner.partner
    stream.verify = verify
    stream.batch = <uint32_t>max(<uint64_t>1, count // STAMPS)
    timestamps = np.zeros(1 + (count - 1) // stream.batch, dtype=np.int64)
    stamps = timestamps
    try:
        with nogil:
            result = receive_all(endpoint, &stream, stamps)
        check_loop(endpoint, result, &stream.failure, buffers)
    finally:
        free(stream.requests)
    return {
        "elapsed_ns": stream.ended_ns - stream.started_ns,
        "count": count,
        "batch": stream.batch,
        "timestamps_ns": timestamps,
    }


cdef object open_stream(Stream *stream, uint32_t size_bytes, uint64_t count, uint32_t window,
                        uint64_t match):
    if count == 0 or window == 0:
        raise InputError(f"a stream needs messages and a window, not {count} and {window}")
    buffers = make_buffers(size_bytes, window)
    stream.requests = <MxRequest **>calloc(window, sizeof(MxRequest *))
    if stream.requests == NULL:
        raise MemoryError()
    stream.match = match
    stream.count = count
    stream.size_bytes = size_bytes
    stream.window = window
    return buffers


cdef LoopResult complete(Endpoint endpoint, Stream *stream, uint64_t number,
                         uint32_t slot) noexcept nogil:
    """Waits for message `number`, whose place is `slot`, and releases its request."""
    cdef MxRequest *request = stream.requests[slot]
    cdef WaitResult result
    stream.failure.message = number
    if request.kind == REQUEST_RECEIVE and stream.partner != NULL:
        result = wait_for_message(endpoint, stream.partner, request, &stream.failure.status)
    else:
        result = endpoint.wait_c(request, NEVER_NS)
    if result != WAIT_READY:
        return LOOP_FAILED if result == WAIT_TIMED_OUT else LOOP_STOPPED
    stream.failure.status = request.status
    endpoint.release_c(request)
    stream.requests[slot] = NULL
    return LOOP_DONE if stream.failure.status == STATUS_SUCCESS else LOOP_FAILED


cdef LoopResult send_all(Endpoint endpoint, Stream *stream) noexcept nogil:
    cdef uint64_t number
    cdef uint32_t slot
    cdef uint8_t *data
    cdef LoopResult result
    for number in range(stream.count):
        slot = <uint32_t>(number % stream.window)
        if stream.requests[slot] != NULL:
            result = complete(endpoint, stream, number - stream.window, slot)
            if result != LOOP_DONE:
                return result
        data = stream.buffers + <uint64_t>slot * stream.size_bytes
        stamp(data, stream.size_bytes, number)
        stream.requests[slot] = endpoint.isend_c(
            stream.partner, data, stream.size_bytes, stream.match)
        if stream.requests[slot] == NULL:
            return LOOP_NO_MEMORY
        if number % SEND_BATCH == SEND_BATCH - 1:
            endpoint.progress_c()
    for number in range(stream.count - min(stream.count, <uint64_t>stream.window), stream.count):
        slot = <uint32_t>(number % stream.window)
        if stream.requests[slot] != NULL:
            result = complete(endpoint, stream, number, slot)
            if result != LOOP_DONE:
                return result
    return LOOP_DONE


cdef bint post(Endpoint endpoint, Stream *stream, uint32_t slot) noexcept nogil:
    stream.requests[slot] = endpoint.irecv_c(
        stream.buffers + <uint64_t>slot * stream.size_bytes, stream.size_bytes, stream.match,
        ANY_BITS)
    return stream.requests[slot] != NULL


cdef LoopResult receive_all(Endpoint endpoint, Stream *stream,
                            int64_t[::1] stamps) noexcept nogil:
    cdef uint64_t number
    cdef uint32_t slot
    cdef uint32_t until_stamp = 1
    cdef int64_t stamps_count = 0
    cdef LoopResult result
    cdef uint8_t *data = stream.buffers
    for slot in range(<uint32_t>min(<uint64_t>stream.window, stream.count)):
        if not post(endpoint, stream, slot):
            return LOOP_NO_MEMORY
    slot = 0
    for number in range(stream.count):
        result = complete(endpoint, stream, number, slot)
        if result != LOOP_DONE:
            return result
        until_stamp -= 1
        if until_stamp == 0:
            stamps[stamps_count] = endpoint.host.now_c()
            stamps_count += 1
            until_stamp = stream.batch
        if stream.verify:
            data = stream.buffers + <uint64_t>slot * stream.size_bytes
            if not stamped(data, stream.size_bytes, number):
                return LOOP_CORRUPT
        if number + stream.window < stream.count:
            if not post(endpoint, stream, slot):
                return LOOP_NO_MEMORY
        slot = slot + 1 if slot + 1 < stream.window else 0
    stream.started_ns = stamps[0]
    stream.ended_ns = endpoint.host.now_c()
    endpoint.flush_c()
    return LOOP_DONE
