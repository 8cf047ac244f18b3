"""Workloads of messages, ping-pong and stream, and what others share: delays, stamped buffers."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.partner cimport connect_start
from shrimpmx.mx.types cimport (
    MESSAGE_MAX_BYTES, REQUEST_RECEIVE, STATUS_NO_RESOURCES, STATUS_SUCCESS, STATUS_UNREACHABLE,
    MxPartner, MxRequest,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.random cimport random_state
from shrimpmx.wait.waiter cimport WAIT_READY, WAIT_TIMED_OUT, WaitResult

from shrimpmx.errors import InputError, MxError
from shrimpmx.mx.handles import status_name


# -- Delays drawn from a seed: computing before a send, or how long a message keeps one waiting.

cdef enum:
    # How far an adversary's delays lie beyond the limit (ours): the waiter begins to spin a few
    # microseconds after the moment that they count from.
    BEYOND_NS = 20_000


cdef int delays_between(Delays *delays, int64_t low_ns, int64_t high_ns, uint64_t seed) except -1:
    if low_ns < 0 or 0 < high_ns < low_ns or high_ns < 0:
        raise InputError(
            f"delays lie between two times, but {low_ns} ns and {high_ns} ns were given")
    delays.kind = DELAY_EVEN
    delays.low_ns = low_ns
    delays.high_ns = high_ns if high_ns > 0 else low_ns
    delays.mean_ns = 0
    delays.state = random_state(seed)
    return 0


cdef int delays_arriving(Delays *delays, str arrivals, int64_t mean_ns, int64_t limit_ns,
                         uint64_t seed) except -1:
    if arrivals == "adversary":
        return delays_between(delays, limit_ns + BEYOND_NS, 0, seed)
    delays_between(delays, mean_ns, 0, seed)
    delays.mean_ns = mean_ns
    if arrivals == "uniform":
        delays.low_ns = 0
        delays.high_ns = 2 * mean_ns
    elif arrivals == "exponential":
        delays.kind = DELAY_EXPONENTIAL
    elif arrivals == "bimodal":
        delays.kind = DELAY_BIMODAL
    elif arrivals != "fixed":
        raise InputError(
            "arrivals are fixed, uniform, exponential, bimodal or adversary, "
            f"not {arrivals!r}")
    return 0


cdef object drawn(Delays *delays, uint32_t count):
    cdef uint32_t number
    cdef int64_t[::1] figures
    found = np.empty(count, dtype=np.int64)
    figures = found
    for number in range(count):
        figures[number] = next_delay_ns(delays)
    return found


def draw_delays(int64_t low_ns, int64_t high_ns, uint64_t seed, uint32_t count):
    """The first `count` delays of a ping-pong, ns (int64); for tests and analysis."""
    cdef Delays delays
    delays_between(&delays, low_ns, high_ns, seed)
    return drawn(&delays, count)


def draw_arrivals(str arrivals not None, int64_t mean_ns, int64_t limit_ns, uint64_t seed,
                  uint32_t count):
    """The first `count` arrival delays of a distribution, ns (int64); for tests and analysis."""
    cdef Delays delays
    delays_arriving(&delays, arrivals, mean_ns, limit_ns, seed)
    return drawn(&delays, count)


# -- What the message workloads share: stamped buffers and errors.

cdef enum:
    # So many resend delays of silence, and a lost message would have come (ours).
    PATIENCE_RESEND_DELAYS = 10


cdef int check_loop(Endpoint endpoint, LoopResult result, LoopFailure *failure,
                    object buffers) except -1:
    if result == LOOP_DONE and not endpoint.host.failed:
        return 0
    endpoint.library.abandoned.append(buffers)
    where = f"endpoint {endpoint.index} of node {endpoint.node.index}"
    if result == LOOP_STOPPED or endpoint.host.failed:
        raise endpoint.host.ended(f"the run was stopped while {where} was at work")
    if result == LOOP_FAILED:
        name = status_name(failure.status)
        raise MxError(f"message {failure.message} of {where} ended with {name}", name)
    if result == LOOP_CORRUPT:
        raise MxError(f"{where} received message {failure.message} damaged or out of order",
                      "corrupted")
    if result == LOOP_NO_MEMORY:
        raise MemoryError("not enough memory for another request")
    return 0


cdef int check_partner(Endpoint endpoint, Partner partner) except -1:
    endpoint.check_open()
    if partner.library is not endpoint.library or partner.partner == NULL:
        raise InputError("the partner belongs to another endpoint; connect from this one")
    return 0


cdef WaitResult wait_for_message(Endpoint endpoint, MxPartner *partner, MxRequest *receive,
                                 uint8_t *status) noexcept nogil:
    # The time of the last pass spares a look at the clock; it may be old, hence the second wait.
    cdef int64_t patience_ns = PATIENCE_RESEND_DELAYS * endpoint.library.settings.resend_delay_ns
    cdef WaitResult answer
    cdef WaitResult result = endpoint.wait_c(receive, endpoint.library.now_ns + patience_ns)
    while result == WAIT_TIMED_OUT:
        result = endpoint.wait_c(receive, endpoint.host.now_c() + patience_ns)
        if result == WAIT_TIMED_OUT:
            answer = ask(endpoint, partner, status)
            if endpoint.test_c(receive):
                return WAIT_READY
            if answer != WAIT_READY:
                return answer
    return result


cdef WaitResult ask(Endpoint endpoint, MxPartner *partner, uint8_t *status) noexcept nogil:
    """Connects once more, which a living partner answers and a closed one refuses."""
    cdef bint was_given_up = not partner.can_send
    cdef WaitResult result
    cdef MxRequest *question = connect_start(endpoint.library, partner, endpoint.library.key)
    status[0] = STATUS_NO_RESOURCES
    if question == NULL:
        return WAIT_TIMED_OUT
    endpoint.doorbell_c()
    result = endpoint.wait_c(question, NEVER_NS)
    if result != WAIT_READY:
        return result
    status[0] = question.status
    endpoint.release_c(question)
    if status[0] == STATUS_SUCCESS and was_given_up:
        status[0] = STATUS_UNREACHABLE  # it lives, but what was under way is lost
    return WAIT_READY if status[0] == STATUS_SUCCESS else WAIT_TIMED_OUT


cdef object make_buffers(uint32_t size_bytes, uint32_t count):
    if size_bytes > MESSAGE_MAX_BYTES:
        raise InputError(
            f"a message of {size_bytes} bytes is too long: at most {MESSAGE_MAX_BYTES} bytes")
    # Of numpy, whose memory lies in the rank's shared heap if there is one. One byte more, so
    # that a message of no bytes has an address too.
    buffers = np.zeros(<uint64_t>size_bytes * count + 1, dtype=np.uint8)
    pattern = (np.arange(256) * 37 + 11).astype(np.uint8)
    buffers[:<uint64_t>size_bytes * count].reshape(count, size_bytes)[:] = np.resize(
        pattern, size_bytes)
    return buffers


# -- Ping-pong: two ranks send one message back and forth.
#
# The basic measurement of all three papers; `delay_ns` is the computation before each
# send of the waiting paper's section 5.1.

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


cdef inline bint post_exchange(Endpoint endpoint, Exchange *exchange,
                               uint64_t number) noexcept nogil:
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
        if not post_exchange(endpoint, exchange, number):
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
        if not post_exchange(endpoint, exchange, 0):
            return LOOP_NO_MEMORY
    for number in range(first, last):
        exchange.failure.message = number
        stamp(exchange.outgoing, exchange.size_bytes, number)
        result = await_message(endpoint, exchange)
        if result != LOOP_DONE:
            return result
        if number + 1 < count and not post_exchange(endpoint, exchange, number + 1):
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


# -- A one-way stream of messages, for message rates (coalescing paper, IV-B).

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


cdef bint post_slot(Endpoint endpoint, Stream *stream, uint32_t slot) noexcept nogil:
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
        if not post_slot(endpoint, stream, slot):
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
            if not post_slot(endpoint, stream, slot):
                return LOOP_NO_MEMORY
        slot = slot + 1 if slot + 1 < stream.window else 0
    stream.started_ns = stamps[0]
    stream.ended_ns = endpoint.host.now_c()
    endpoint.flush_c()
    return LOOP_DONE
